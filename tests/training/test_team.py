"""Teams of processes: the bits do not depend on their number, errors and kills end all of them."""

import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from benchmarks.attack import kill, ranks
from benchmarks.cluster import exchange_bytes
from tests.cli.running import run
from tests.training.hosts import two_hosts
from tigra.processes.team import Team, shares

needs_mpi = pytest.mark.skipif(ranks.launcher() is None, reason="no MPI here; run: pip install mpi4py mpich")

SEED = 1  # of a try with few processes


def test_shares_are_contiguous_and_nearly_equal():
    for n in range(9):
        for size in range(1, 5):
            parts = [list(range(n))[part] for part in shares(n, size)]
            assert [*chain(*parts)] == list(range(n)) and max(map(len, parts)) - min(map(len, parts)) <= 1


def test_one_process_adds_rows_in_their_order():
    rows = np.array([[1e8], [1.0], [-1e8]], np.float32)
    assert Team().add_rows(rows.copy(), 3) == 0 and Team().add_rows(rows[::-1].copy(), 3) == 0
    assert Team().add_rows(rows[[0, 2, 1]], 3) == 1 and Team().add_rows(rows[1:2], 1, np.float32([2])) == 3


@needs_mpi
@pytest.mark.slow
def test_networks_have_the_same_bits_for_any_number_of_processes_and_errors_reach_all():
    words = [ranks.launcher(), "-n", "4", sys.executable, "-m", "mpi4py", "-m", "tests.training.team_script"]
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        words, cwd=root, env=ranks.environment(), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    *networks, failure, outcomes = done.stdout.splitlines()
    assert networks == ["plain []", "oriented []", "harmonic []"]
    assert failure.startswith("Process 3 on ") and failure.endswith("has no attribute 'checked_pixels'. step 0")
    assert outcomes == "[0, 1, 2, 3] ['The loss rose.']"


@needs_mpi
@pytest.mark.slow
def test_the_command_survives_the_kill_of_a_process_and_ends_with_the_same_bits(tmp_path):
    kill.draw_pictures(tmp_path / kill.PICTURES)
    few = [*ranks.TRAIN[:5], "3", *ranks.TRAIN[6:]]  # epochs
    command, kills = kill.undisturbed(few, tmp_path)._replace(seconds=0.1), Counter()
    ranks.attempt(command, SEED, tmp_path, kills)
    assert kills.total() == 1


@needs_mpi
@pytest.mark.slow
def test_predictions_of_a_folder_are_shared_out_and_stay_in_order(tmp_path):
    kill.draw_pictures(tmp_path / "pictures")
    (tmp_path / "pictures" / "ring" / "3.png").write_text("no picture")
    words = ["predict", "mnist-012", str(tmp_path / "pictures"), "--recursive", "--csv"]
    run(*words, tmp_path / "one.csv", expect=1)
    command = [ranks.launcher(), "-n", "2", sys.executable, "-m", "tigra", *words, tmp_path / "two.csv"]
    done = subprocess.run(command, env=ranks.environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and done.stderr.startswith("Error: 1 of 80 pictures could not be read")
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()


@needs_mpi
@pytest.mark.slow
def test_two_machines_train_to_the_same_bits_over_their_network(tmp_path):
    version = subprocess.run([ranks.launcher(), "--version"], capture_output=True, text=True, check=False).stdout
    if "HYDRA" not in version:
        pytest.skip("only mpiexec of MPICH is told how to enter a network namespace")
    kill.draw_pictures(tmp_path / kill.PICTURES)
    words = ["train", str(tmp_path / kill.PICTURES), "--architecture", "SC[2, 1]-S[2]-FC[200]-FC[100]"]
    words += ["--epochs", "2", "--batch-size", "40", "--threads", "1", "--out"]
    run(*words, tmp_path / "alone.npz")
    with two_hosts(tmp_path) as hosts:
        command = [*hosts.start(ranks.launcher()), sys.executable, "-m", "tigra", *words, tmp_path / "both.npz"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0 and "in each of 2 processes" in done.stdout, done.stderr
        assert hosts.sent() > 4 * exchange_bytes(20_000, 2, 2)  # in four steps
    assert (tmp_path / "both.npz").read_bytes() == (tmp_path / "alone.npz").read_bytes()

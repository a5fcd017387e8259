"""`tigra data`: what it prints, its JSON, its exit status."""

import gzip
import json
import os
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from tigra_cli import data as data_commands
from tigra_cli.main import main

import tigra
from tests.datasets.fake_sources import packed, write_folder, write_tar
from tigra.datasets import sources

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_cache")]


@pytest.fixture
def published(source, archive, monkeypatch):
    """A function (manners in order): MNIST and ETH-80, in small, are published by servers with these manners."""

    def publish(*manners):
        monkeypatch.setitem(sources.SOURCES, "mnist", source(*manners))
        monkeypatch.setitem(sources.SOURCES, "eth80", archive(*manners))

    return publish


def run(*arguments, expect=0):
    result = CliRunner().invoke(main, ["data", *map(str, arguments)])
    assert result.exit_code == expect, f"exit {result.exit_code}\n{result.output}\n{result.exception!r}"
    return result


def fails(*arguments, status=1):
    """The one sentence on standard error."""
    result = run(*arguments, expect=status)
    assert result.stdout == "" and "Traceback" not in result.output
    return result.stderr


# --- list ---------------------------------------------------------------------------------------------


def test_list_when_nothing_is_there(empty_cache):
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == ["data", "set", "size", "found", "by", "in"]
    assert [line.split()[0] for line in lines[1:5]] == ["mnist-012", "mnist-rot", "mnist-trans", "eth-80"]
    assert " kB  tigra " in lines[1] and lines[2].endswith("not found; run 'tigra data fetch mnist'")
    assert lines[4].endswith("not found; run 'tigra data fetch eth80'")
    assert lines[5:] == [f"cache folder: {empty_cache}, 0 B of decoded pictures"]


def test_list_shows_where_and_by_whom(tmp_path, mnist, eth80, monkeypatch):
    write_folder(tmp_path / "named" / "mnist", packed(mnist))
    path = write_tar(tmp_path / "env" / "eth80-cropped64.tgz", eth80)
    monkeypatch.setenv("TIGRA_DATA", str(tmp_path / "env"))
    lines = run("list", "--data-dir", tmp_path / "named").stdout.splitlines()
    size = sum(len(content) for content in packed(mnist).values())
    assert lines[2].split() == ["mnist-rot", f"{size / 1e3:.1f}", "kB", "--data-dir", str(tmp_path / "named" / "mnist")]
    assert lines[4].split()[3:] == ["$TIGRA_DATA", str(tmp_path / "env")]
    content = json.loads(run("list", "--data-dir", tmp_path / "named", "--json").stdout)
    assert set(content) == {"cache", "decoded_bytes", "datasets"}
    entries = {entry["name"]: entry for entry in content["datasets"]}
    assert all(set(entry) == {"name", "source", "found", "origin", "paths", "bytes"} for entry in entries.values())
    assert entries["eth-80"] == {
        "name": "eth-80", "source": "eth80", "found": True, "origin": "$TIGRA_DATA", "paths": [str(path)],
        "bytes": path.stat().st_size,
    }  # fmt: skip
    assert entries["mnist-trans"]["bytes"] == size and entries["mnist-012"]["source"] is None


def test_a_folder_that_is_none(tmp_path, monkeypatch):
    assert "does not exist" in fails("list", "--data-dir", tmp_path / "none", status=2)
    monkeypatch.setenv("TIGRA_DATA", str(tmp_path / "none"))
    for command in (["list"], ["verify"], ["fetch", "mnist"]):
        assert "none ($TIGRA_DATA) is not a folder" in fails(*command)


# --- fetch --------------------------------------------------------------------------------------------


def test_fetch_puts_files_into_the_cache_and_says_so(published, empty_cache):
    published("missing", "good")
    for name in ("mnist-rot", "mnist"):
        result = run("fetch", name)
        assert result.stderr == "", "quiet where standard error is no terminal"
        assert str(empty_cache / "mnist") in result.stdout
    assert result.stdout == f"mnist is already in {empty_cache / 'mnist'} (cache).\n"
    content = json.loads(run("fetch", "mnist", "--json").stdout)
    assert content == {"source": "mnist", "folder": str(empty_cache / "mnist"), "fetched": []}
    assert run("verify", "mnist").stdout.count("ok ") == 4


def test_fetch_eth80_says_honestly_what_is_known(published, tmp_path):
    published("good")
    content = json.loads(run("fetch", "mnist", "--data-dir", tmp_path, "--json").stdout)
    assert content["folder"] == str(tmp_path / "mnist") and len(content["fetched"]) == 4
    lines = run("fetch", "eth-80", "--data-dir", tmp_path).stdout.splitlines()
    folder = tmp_path / "eth80"
    assert lines[0] == f"eth80: eth80-cropped-close128.tgz in {folder}"
    assert lines[1].startswith("No SHA-256 of eth80-cropped-close128.tgz is published")
    total = sources.sha256_of(folder / "eth80-cropped-close128.tgz")
    assert lines[2] == f"Its SHA-256, {total}, was saved in eth80-cropped-close128.tgz.sha256."


def test_fetch_with_a_mirror_and_a_file(published, server, eth80, tmp_path):
    published("missing")
    arguments = ["--mirror", f"{server.url}/good", "--data-dir", tmp_path]
    write_folder(tmp_path / "eth80", eth80)
    assert "already in" in run("fetch", "eth80", *arguments).stdout
    assert "already in" not in run("fetch", "eth80", "--file", "eth80-cropped-close128.tgz", *arguments).stdout
    assert (tmp_path / "eth80" / "eth80-cropped-close128.tgz").is_file()
    assert "already in" in run("fetch", "eth80", "--file", "eth80-cropped-close128.tgz", *arguments).stdout
    assert "has no file 'other.tgz'" in fails("fetch", "eth80", "--file", "other.tgz", status=2)
    assert "begins with http://" in fails("fetch", "mnist", "--mirror", "ftp://there/", status=2)


def test_a_damaged_file_that_comes_first_is_pointed_out(published, mnist, tmp_path, monkeypatch):
    published("good")
    write_folder(tmp_path / "env", packed(mnist) | {"t10k-labels-idx1-ubyte.gz": b"damaged"})
    monkeypatch.setenv("TIGRA_DATA", str(tmp_path / "env"))
    assert "($TIGRA_DATA) takes precedence over the new files" in run("fetch", "mnist").stderr


def test_data_elsewhere_is_not_put_up_with_when_a_folder_is_named(published, mnist, empty_cache, tmp_path):
    published("good")
    write_folder(empty_cache / "mnist", packed(mnist))
    assert "already" in run("fetch", "mnist").stdout
    (tmp_path / "named").mkdir()
    run("fetch", "mnist", "--data-dir", tmp_path / "named")
    assert len(list((tmp_path / "named" / "mnist").iterdir())) == 4


def test_fetch_tells_what_to_do_by_hand_when_all_fails(published, empty_cache):
    published("missing", "cut")
    message = fails("fetch", "mnist")
    assert "404 Not Found" in message and "connection was cut" in message
    names = ", ".join(file.name for file in sources.SOURCES["mnist"].files)
    assert message.endswith(f"Download {names} by hand and put it into {empty_cache / 'mnist'}.\n")
    assert not empty_cache.exists(), "no empty folders are left"


def test_progress_shows_bytes_percent_and_time_left(published, monkeypatch):
    published("drip")
    shown = []

    class Terminal(data_commands.Progress):
        def show(self, *arguments, **named):
            shown.append((arguments, named))

    monkeypatch.setattr(data_commands, "Progress", Terminal)
    run("fetch", "mnist")
    text, done, total = shown[-1][0]
    assert text == f"100.0 % of {total} B  t10k-labels-idx1-ubyte.gz" and done == total > 0
    assert shown[-1][1] == {"phase": "t10k-labels-idx1-ubyte.gz"}
    run("fetch", "eth80")
    assert shown[-1][0][1] == shown[-1][0][2] > 0


def test_the_embedded_set_needs_nothing():
    for command in ("fetch", "verify"):
        assert run(command, "mnist-012").stdout.startswith("mnist-012 comes with tigra")
        assert json.loads(run(command, "mnist-012", "--json").stdout)


def test_unknown_names():
    for command in ("fetch", "verify"):
        assert "no source of data 'cifar'; choose one of mnist, eth80" in fails(command, "cifar", status=2)


# --- verify -------------------------------------------------------------------------------------------


def test_verify_all_that_is_found(tmp_path, mnist):
    write_folder(tmp_path / "mnist", packed(mnist))
    lines = run("verify", "--data-dir", tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 4 + ["absent"]
    content = json.loads(run("verify", "--data-dir", tmp_path, "--json").stdout)
    assert content["passed"] is True and len(content["files"]) == 5
    assert set(content["files"][0]) == {"source", "file", "state", "detail"}


def test_verify_fails_on_damage_and_on_what_was_named_but_is_absent(tmp_path, mnist):
    broken = gzip.compress(mnist["train-images-idx3-ubyte"])[:-1]
    write_folder(tmp_path / "mnist", packed(mnist) | {"train-images-idx3-ubyte.gz": broken})
    for arguments in (["mnist-trans"], []):
        lines = run("verify", *arguments, "--data-dir", tmp_path, expect=1).stdout.splitlines()
        assert lines[0].startswith("damaged") and "cut short" in lines[0] and lines[1].startswith("ok")
    content = json.loads(run("verify", "mnist", "--data-dir", tmp_path, "--json", expect=1).stdout)
    assert content["passed"] is False and content["files"][0]["state"] == "damaged"
    assert "tigra data fetch eth80" in fails("verify", "eth80", "--data-dir", tmp_path)


# --- show ---------------------------------------------------------------------------------------------


def test_show_draws_classes_in_rows_and_blocks_side_by_side(tmp_path):
    result = run("show", "mnist-012", "--columns", "3", "--out", tmp_path / "sheet.png")
    assert result.stdout.startswith(f"{tmp_path / 'sheet.png'}: 3 classes of mnist-012\n")
    with Image.open(tmp_path / "sheet.png") as picture:
        pixels = np.asarray(picture)
    splits = tigra.load_dataset("mnist-012")
    for block, split in enumerate((splits.train, splits.test_upright, splits.test)):
        for row in range(3):
            places = np.flatnonzero(split.labels == row)
            last = np.rint(255 * split.images[places[-1]]).astype(np.uint8)
            assert _is_in(pixels, np.kron(last, np.ones((2, 2), np.uint8))), (block, row)


def _is_in(sheet, image):
    (height, width), brightest = image.shape, np.unravel_index(image.argmax(), image.shape)
    corners = [place - brightest for place in np.argwhere(sheet == image.max()) if (place >= brightest).all()]
    return any(np.array_equal(sheet[i : i + height, j : j + width], image) for i, j in corners)


def test_show_takes_the_options_of_the_data_set(tmp_path, mnist, eth80):
    write_folder(tmp_path / "eth80", eth80)
    words = ["--data-dir", tmp_path, "--n-train", "100", "--n-valid", "20", "--out", tmp_path / "sheet.jpg", "--json"]
    content = json.loads(run("show", "eth-80", *words).stdout)
    assert set(content) == {"file", "dataset", "protocol", "notes", "classes", "images"}
    assert content["classes"] == list(sources.ETH80_CLASSES) and content["images"]["train"] == 100


def test_show_says_what_is_wrong(tmp_path):
    assert "Missing option '--out'" in fails("show", "mnist-012", status=2)
    assert "must end in one of .png, .jpg" in fails("show", "mnist-012", "--out", tmp_path / "sheet", status=2)
    assert "There is no data set 'x'" in fails("show", "x", "--out", tmp_path / "sheet.png", status=2)
    assert "mnist-012 has no option --fold" in fails("show", "mnist-012", "--fold", "1", "--out", "a.png", status=2)
    assert "No such file" in fails("show", "mnist-012", "--out", tmp_path / "nowhere" / "sheet.png")
    assert list(tmp_path.glob("*.png")) == []


def test_show_says_when_there_are_more_classes_than_rows(tmp_path):
    for number in range(45):
        (tmp_path / "many" / f"class {number:02d}").mkdir(parents=True)
        for n in range(3):
            Image.new("L", (9, 9), 5 * number + n).save(tmp_path / "many" / f"class {number:02d}" / f"{n}.png")
    text = run("show", tmp_path / "many", "--out", tmp_path / "sheet.png").stdout
    assert "the first 40 of 45 classes" in text


# --- clear --------------------------------------------------------------------------------------------


def test_clear_deletes_decoded_pictures_and_nothing_else(empty_cache, mnist, tmp_path):
    for name in ("a", "b"):
        (tmp_path / "own" / name).mkdir(parents=True)
        for n in range(3):
            Image.new("L", (9, 9), 50 * n + ord(name)).save(tmp_path / "own" / name / f"{n}.png")
    write_folder(empty_cache / "mnist", packed(mnist))
    tigra.load_dataset(tmp_path / "own")
    size = json.loads(run("list", "--json").stdout)["decoded_bytes"]
    assert size > 500 and json.loads(run("clear", "--json").stdout) == {"freed_bytes": size}
    assert [path.name for path in empty_cache.iterdir()] == ["mnist"] and run("clear").stdout == "0 B freed\n"


def test_verify_names_what_is_missing_of_an_incomplete_set(tmp_path, mnist):
    files = packed(mnist)
    files["train-images-idx3-ubyte.gz"] = files["train-images-idx3-ubyte.gz"][:-1]
    del files["t10k-labels-idx1-ubyte.gz"]
    write_folder(tmp_path / "mnist", files)
    lines = run("verify", "--data-dir", tmp_path, expect=1).stdout.splitlines()
    assert lines[0].startswith("absent") and "t10k-labels-idx1-ubyte.gz" in lines[0]
    assert lines[1].startswith("damaged") and "train-images" in lines[1]


@pytest.mark.parametrize("name", ["TIGRA_DATA", "TIGRA_CACHE"])
def test_a_home_that_does_not_exist_gets_a_sentence(monkeypatch, name):
    monkeypatch.setenv(name, "~nobody-of-this-name/x")
    assert f"(${name}) is in a home folder that does not exist" in fails("list")


def test_a_user_without_a_home_is_told_to_name_a_cache(monkeypatch):
    def fail(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TIGRA_CACHE", raising=False)
    monkeypatch.setattr("pooch.os_cache", fail)
    assert "set TIGRA_CACHE to a folder" in fails("list")


def test_addresses_that_are_none_are_refused():
    for mirror in ("http://", "http://[bad", "http://a b/c", "there"):
        assert "begins with http://" in fails("fetch", "mnist", "--mirror", mirror, status=2)


def test_signals_stop_a_command_as_ctrl_c_does(tmp_path):
    """Here `data show`, while it decodes pictures: nothing is left in the cache."""
    for kind in ("a", "b"):
        (tmp_path / "own" / kind).mkdir(parents=True)
        for n in range(3):
            Image.new("L", (9, 9), 50 * n + ord(kind)).save(tmp_path / "own" / kind / f"{n}.png")
    script = (
        "import os, signal, tigra.images.store as store\n"
        "from tigra_cli.main import main\n"
        "right = store._fill\n"
        "store._fill = lambda *a: (os.kill(os.getpid(), signal.NUMBER), right(*a))\n"
        "main()\n"
    )
    processes = {}
    for name in ("SIGTERM", "SIGHUP"):  # at the same time
        code = [sys.executable, "-c", script.replace("NUMBER", name)]
        words = ["data", "show", tmp_path / "own", "--out", tmp_path / f"{name}.png"]
        environment = os.environ | {"TIGRA_CACHE": str(tmp_path / name)}
        processes[name] = subprocess.Popen([*code, *words], stderr=subprocess.PIPE, text=True, env=environment)
    for name, process in processes.items():
        _, said = process.communicate()
        assert process.returncode == 130 and said == "Stopped.\n"
        assert list((tmp_path / name / "images").iterdir()) == [] and not (tmp_path / f"{name}.png").exists()


# --- help ---------------------------------------------------------------------------------------------


def test_every_command_has_help_and_an_example():
    assert {"list", "fetch", "verify", "show", "clear"} == set(data_commands.data.commands)
    for name, command in data_commands.data.commands.items():
        assert "Example:" in run(name, "--help").stdout
        assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option))


def test_help_is_quick_because_nothing_heavy_is_loaded():
    code = "import sys, tigra_cli.data; print(sorted({'numpy', 'pooch', 'tigra'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"

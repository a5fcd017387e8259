"""Estimates of memory and work: close to what is measured, and refused beyond the limits."""

import copy
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

import tigra
from tigra.errors import ArchitectureError, ModelFileError, UsageError
from tigra.layers import frames
from tigra.models.build import Plan
from tigra.models.costs import Cost, check_cost
from tigra.models.notation import parse_architecture
from tigra.options import BuildOptions, FitOptions

NETWORKS = {
    "vector": ("SC[20, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]", {}),
    "products": ("SC[8, 2]-DP[300]-SC[16, 2]-S[6]", {"mixing": "products", "diffusion": 1, "margin": 2}),
    "full": ("SC[8, 3]-DP[300]-SC[16, 3]-S[6]", {"mixing": "full"}),
    "oriented": ("OC[8, 2]-GC[2]-OC[16, 2]-DP[40]-S[2]", {"batch_norm": True, "diffusion": 1, "margin": 2}),
    "dilated": ("OC[8, 2]-GD[2]-OC[16, 2]-S[2]", {"batch_norm": True}),
    "convnet": ("C[10]-P[2]-C[20]-FC[50]", {}),
    "harmnet": ("HRC[1, 5]-HCN[5]-HRC[5, 5]", {}),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_memory_is_estimated_within_a_factor_of_two(name, monkeypatch):
    """For layers one by one; several layers in one call need less."""
    architecture, options = NETWORKS[name]
    network = tigra.build_network(architecture, (20, 20), 3, **options)
    images = np.random.default_rng(0).random((network.micro_batch, 20, 20))
    in_stages = _peak(network, images)
    monkeypatch.setattr("tigra.models.network.through_stages", lambda *_: (None, 0))
    peak = _peak(network, images)
    assert 0.5 < network.cost.numbers * network.micro_batch * 4 / peak < 2
    assert in_stages < 1.01 * peak


def _peak(network, images):
    copy.copy(network).scores(images[:1])  # loads the kernels
    vars(frames._scratch).clear()  # of earlier calls in this thread
    tracemalloc.start()
    copy.copy(network).scores(images)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("name", NETWORKS)
def test_the_memory_of_training_is_estimated_within_a_factor_of_two(name, monkeypatch):
    architecture, options = NETWORKS[name]
    rng = np.random.default_rng(0)
    images, labels = rng.random((32, 20, 20)), np.arange(32) % 3
    network = tigra.build_network(architecture, (20, 20), 3, **options)
    splits = (images, labels), (images[:3], labels[:3])
    fit = FitOptions(epochs=1, batch_size=32, learning_rate=1e-5)
    next(tigra.Training(network, splits, fit).steps())  # loads the kernels
    monkeypatch.setenv("TIGRA_MAX_TRAINING_MEMORY", "1")
    with pytest.raises(UsageError, match="batch size, .*set TIGRA_MAX_TRAINING_MEMORY to") as caught:
        tigra.Training(network, splits, fit)
    needed = str(caught.value).rstrip(".").rsplit(" ", 1)[1]
    monkeypatch.setenv("TIGRA_MAX_TRAINING_MEMORY", needed)
    vars(frames._scratch).clear()
    tracemalloc.start()
    next(tigra.Training(network, splits, fit).steps())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 < int(needed) * 1e6 / peak < 2


def test_threads_batches_and_parameters_take_memory_in_training(monkeypatch):
    monkeypatch.setenv("TIGRA_MAX_TRAINING_MEMORY", "1")

    def needed(text, batch, threads, **options):
        network = tigra.build_network(text, (20, 20), 3, **options)
        split = np.zeros((256, 20, 20)), np.arange(256) % 3
        with pytest.raises(UsageError, match="TIGRA_MAX_TRAINING_MEMORY") as caught:
            tigra.Training(network, (split, split), FitOptions(batch_size=batch), threads)
        return int(str(caught.value).rstrip(".").rsplit(" ", 1)[1])

    alone, together = ("SC[20, 3]-S[4]", {}), ("OC[20, 2]-S[2]", {"batch_norm": True})
    assert needed(alone[0], 64, 2) > 1.8 * needed(alone[0], 64, 1) == 1.8 * needed(alone[0], 32, 2)
    assert needed(together[0], 128, 1, **together[1]) > 1.8 * needed(together[0], 64, 2, **together[1])
    assert needed("SC[2, 1]-S[4]-FC[1000]-FC[1000]", 64, 1) > 1e6 * 4 * 10 / 1e6


def test_a_network_beyond_a_limit_is_refused_with_the_remedy(monkeypatch):
    network, images = tigra.build_network("SC[9, 3]-S[4]", (12, 12), 3), np.zeros((3, 12, 12))
    for name, cost in (("MEMORY", Cost(2e6, 0)), ("WORK", Cost(0, 7.5e6))):
        monkeypatch.setattr(network, "cost", cost)
        monkeypatch.setenv(f"TIGRA_MAX_{name}", "4")
        with pytest.raises(UsageError, match=f"the limit is 4; .*set TIGRA_MAX_{name} to") as caught:
            network.predict(images)
        needed = str(caught.value).rstrip(".").rsplit(" ", 1)[1]
        monkeypatch.setenv(f"TIGRA_MAX_{name}", needed)
        assert network.predict(images).shape == (3,)


def test_more_maps_and_a_larger_image_cost_more():
    def cost(text, shape=(20, 20), **more):
        return Plan.of(BuildOptions(architecture=text, image_shape=shape, n_classes=2, **more)).cost

    small = cost("SC[3, 3]-S[4]")
    for other in (cost("SC[30, 3]-S[4]"), cost("SC[3, 3]-S[4]", (40, 40)), cost("SC[3, 3]-S[4]", margin=20)):
        assert other.numbers > 2 * small.numbers and other.operations > 2 * small.operations
    assert cost("SC[3, 3]-S[40]").operations > 4 * small.operations
    assert cost("SC[3, 3]-S[4]", boundary="free").operations == 3 * small.operations
    assert cost("SC[3, 3]-S[4]-FC[5000]-FC[5000]").operations > small.operations + 5000**2


def test_six_gigabytes_or_half_a_minute_for_a_small_picture_are_refused():
    for text in ("SC[200000, 0]-DP[1]-S[0]", "SC[2, 1]-S[300000]"):
        plan = Plan.of(BuildOptions(architecture=text, image_shape=(28, 28), n_classes=2))
        assert plan.n_bytes < 10**7
        with pytest.raises(UsageError, match="This network needs about"):
            check_cost(plan.cost, 1, 4)


def test_an_architecture_text_of_megabytes_is_refused_at_once(tmp_path):
    for text, words in (("DP[1]-" * 500_000, "characters"), ("DP[1]-" * 101 + "S[0]", "more than 100 layers")):
        with pytest.raises(ArchitectureError, match=words):
            parse_architecture(text)
    network = tigra.build_network("S[1]", (4, 4), 2)
    tigra.save(network, tmp_path / "model.npz")
    with zipfile.ZipFile(tmp_path / "model.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    meta = json.loads(members["meta.json"])
    meta["options"]["architecture"] = "DP[1]-" * 500_000 + "S[1]"
    with zipfile.ZipFile(tmp_path / "long.npz", "w") as archive:
        for name, content in (members | {"meta.json": json.dumps(meta).encode()}).items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match="at most 10,000 characters"):
        tigra.load(tmp_path / "long.npz")


def test_deepscat_is_estimated_too(monkeypatch):
    tigra.build_deepscat("W[1, 2]-PCA[1]", (16, 16), 2).features(np.zeros((1, 16, 16)))  # loads SciPy
    model = tigra.build_deepscat("W[1, 2]-PCA[1]", (16, 16), 2)
    tracemalloc.start()
    model.features(np.zeros((1, 16, 16)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.3 < model.cost.numbers * 4 / peak < 3
    monkeypatch.setenv("TIGRA_MAX_WORK", "1")
    monkeypatch.setattr(type(model), "cost", Cost(0, 1e7))
    with pytest.raises(UsageError, match="TIGRA_MAX_WORK to 10"):
        model.features(np.zeros((1, 16, 16)))


def test_limits_may_change_between_predictions(monkeypatch):
    network, image = tigra.build_network("SC[2, 1]-S[1]", (64, 64), 2), np.zeros((1, 64, 64))
    network.scores(image)
    network.cost = Cost(0, 1e7)
    network.scores(image)
    monkeypatch.setenv("TIGRA_MAX_WORK", "1")
    with pytest.raises(UsageError, match="TIGRA_MAX_WORK to 10"):
        network.scores(image)

import numpy as np
import pytest

import tigra
from tigra import ArchitectureError, UsageError, build_network, count_parameters
from tigra.layers import Dense, DynamicPool, ReLU, SpectralConv, Standardise, Statistics
from tigra.models.kinds import LAYER_KINDS, LayerKind, layer_kind, whole
from tigra.models.notation import format_architecture, parse_architecture

PAPER = {
    "mnist-012": "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]",
    "others": "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]",
}


@pytest.mark.parametrize("text", PAPER.values())
def test_texts_of_the_paper_survive_parsing_and_formatting(text):
    assert format_architecture(parse_architecture(text)) == text


def test_spaces_are_optional():
    assert (
        format_architecture(parse_architecture(" SC[3,3] -DP[ 300 ]-S [10]\n-FC[5] ")) == "SC[3, 3]-DP[300]-S[10]-FC[5]"
    )


@pytest.mark.parametrize(
    "text, position, expected, got",
    [
        ("", 1, "the name of a layer", "the end"),
        ("SC[3, 3]-", 10, "the name of a layer", "the end"),
        ("SC[3, 3]--S[1]", 10, "the name of a layer", "'-'"),
        ("XY[3]", 1, "SC, OC, GC, GD, DP, S, FC", "'XY'"),
        ("sc[3, 3]", 1, "SC, OC, GC, GD, DP, S, FC", "'sc'"),
        ("SC(3, 3)", 3, r"'\[' after SC", r"'\('"),
        ("SC[3]", 5, "',' and SC's degree", r"'\]'"),
        ("SC[3, 3", 8, r"'\]'", "the end"),
        ("DP[3, 3]", 5, r"'\]'", "','"),
        ("DP[x]", 4, "a whole number of at least 1", "'x'"),
        ("DP[0]", 4, "a whole number of at least 1", "'0'"),
        ("DP[-3]", 4, "a whole number of at least 1", "'-'"),
        ("DP[1.5]", 5, r"'\]'", "'.'"),
        ("S[99999999999]", 12, "fewer digits", "'9'"),
        ("S[10] FC[5]", 7, "'-'", "'F'"),
    ],
)
def test_malformed_texts_are_refused_with_position_and_expectation(text, position, expected, got):
    with pytest.raises(ArchitectureError, match=f"position {position}: expected .*{expected}.*, got {got}"):
        parse_architecture(text)


@pytest.mark.parametrize(
    "text, message",
    [
        ("SC[2, 1]-FC[3]", r"FC\[3\] at position 10 takes features"),
        ("S[1]-SC[2, 1]", r"SC\[2, 1\] at position 6 takes maps"),
        ("SC[2, 1]-DP[3]", "ends in maps"),
        ("DP[10]-S[1]", r"DP\[10\] at position 1 keeps more nodes.*at most 9"),
        ("S[1]-FC[99999999]", "parameters"),
        ("SC[3, 13]-S[1]", r"SC\[3, 13\] at position 1 has too high a degree: use at most 12"),
        ("S[999999999]", "parameters"),
        ("OC[3, 13]-S[1]", r"OC\[3, 13\] at position 1 has too high a degree: use at most 12"),
        ("OC[2, 0]-S[1]", "position 7: expected a whole number of at least 1 .OC's degree."),
        ("GC[3]-S[1]", r"GC\[3\] at position 1: write GC\[2\], or GC\[2\]-GC\[2\] for a factor of 4"),
        ("GD[2]-GC[2]-S[1]", r"GC\[2\] at position 7 comes after a GD; coarsen first, then dilate"),
        ("GC[2]-GC[2]-GC[2]-S[1]", r"GC\[2\] at position 13 has nothing to coarsen"),
        ("GD[3]-S[1]", r"GD\[3\] at position 1 needs a padded grid of more than 3 pixels, got padded and 3x3"),
        ("GC[2]-DP[5]-S[1]", r"DP\[5\] at position 7 keeps more nodes.*at most 4"),
    ],
)
def test_layers_that_do_not_fit_together_are_refused(text, message):
    with pytest.raises(ArchitectureError, match=message):
        build_network(text, (3, 3), 2)


def test_layers_follow_the_text():
    network = build_network("SC[2, 1]-DP[3]-S[1]-FC[4]", (3, 3), 2)
    kinds = [SpectralConv, DynamicPool, Statistics, Standardise, Dense, ReLU, Dense]
    assert [type(layer) for layer in network.layers] == kinds
    raw = build_network("SC[2, 1]-DP[3]-S[1]-FC[4]", (3, 3), 2, standardise=False)
    assert Standardise not in [type(layer) for layer in raw.layers]


@pytest.mark.parametrize("mixing", ["vector", "full"])
@pytest.mark.parametrize("text, shape", [(PAPER["mnist-012"], (28, 28)), (PAPER["others"], (26, 26))])
def test_parameters_are_counted_without_building(text, shape, mixing):
    assert count_parameters(text, shape, 9, mixing) == build_network(text, shape, 9, mixing=mixing).n_parameters


def test_parameters_of_the_papers_smallest_network_by_hand():
    convolutions = 3 * 4 + 1 + 6 * 4 + 3
    fully_connected = (132 + 1) * 50 + (50 + 1) * 30 + (30 + 1) * 10 + (10 + 1) * 3
    assert count_parameters(PAPER["mnist-012"], (28, 28), 3) == convolutions + fully_connected == 8563


def test_same_seed_same_start_values_and_another_seed_others():
    text = "SC[2, 1]-S[1]-FC[4]"
    first, second, other = (build_network(text, (3, 3), 2, seed=seed).parameters for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, second)
    assert np.any(first != other)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_dtype_throughout(dtype, rng):
    network = build_network("SC[2, 1]-DP[5]-S[1]-FC[4]", (3, 3), 2, dtype=dtype)
    assert network.parameters.dtype == network.predict_proba(rng.uniform(size=(2, 3, 3))).dtype == dtype


def test_a_new_kind_of_layer_is_registered_without_touching_the_parser():
    try:

        @layer_kind("TWICE")
        class TwiceKind(LayerKind):
            """TWICE[units]: two hidden layers of the same size."""

            arguments = (whole("units", 1),)

            def size(self, numbers, site):
                return numbers[0]

            def shapes(self, numbers, site):
                first, second = (Dense.shapes(n, *numbers) for n in (site.size, *numbers))
                return first | {f"second {name}": shape for name, shape in second.items()}

            def build(self, numbers, site):
                first = Dense.init(site.size, *numbers, site.rng, site.dtype)
                return [first, ReLU(), Dense.init(*numbers, *numbers, site.rng, site.dtype), ReLU()]

        network = build_network("S[1]-TWICE[5]", (3, 3), 2)
        assert network.n_parameters == count_parameters("S[1]-TWICE[5]", (3, 3), 2) == 5 * 5 + 6 * 5 + 6 * 2
    finally:
        del LAYER_KINDS["TWICE"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"n_classes": 1}, "n_classes must be a whole number of at least 2"),
        ({"dtype": "float16"}, "float32"),
        ({"dense_init": "ones"}, "default, paper"),
        ({"smoothing": -1.0}, "smoothing"),
        ({"smoothing": float("nan")}, "smoothing"),
        ({"smoothing": 1e9}, "smoothing"),
        ({"smoothing": "a"}, "smoothing"),
        ({"diagonal_weight": None}, "diagonal_weight"),
        ({"standardise": "no"}, "standardise"),
        ({"image_shape": ((1, 2), 3)}, "height, width"),
        ({"margin": -1}, "margin"),
        ({"margin": 1.5}, "margin"),
        ({"margin": 10**6}, "margin"),
        ({"image_shape": (3,)}, "height, width"),
        ({"image_shape": None}, "height, width"),
        ({"seed": -1}, "seed"),
        ({"architecture": 7}, "a string"),
    ],
)
def test_impossible_options_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        build_network(**{"architecture": "S[1]-FC[2]", "image_shape": (3, 3), "n_classes": 2} | arguments)


def test_a_layer_object_stands_in_a_network_once():
    network = build_network("S[1]-FC[2]", (3, 3), 2)
    with pytest.raises(UsageError, match="once"):
        tigra.Network(network.layers + network.layers[:1], network.graph, network.options)


def test_logarithms_of_statistics_are_standardised(rng):
    network = tigra.build_network("S[1]-FC[2]", (4, 4), 2, log_offset=0.05, deviation_floor=0.02)
    assert [type(layer).__name__ for layer in network.layers[:3]] == ["Statistics", "Logarithm", "Standardise"]
    assert (network.layers[1].share, network.layers[1].deviation_floor, network.layers[2].deviation_floor) == (
        0.05,
        0.02,
        0.02,
    )
    images = rng.random((50, 4, 4))
    network.calibrate(images)
    columns = network.forward(network.signal(network.prepare(images)), until=3)
    np.testing.assert_allclose(columns.mean(axis=1), 0, atol=1e-5)
    assert 0.9 < columns.std() <= 1
    with pytest.raises(UsageError, match="log_offset must be a number from 0 to 1, got -1"):
        tigra.build_network("S[1]", (4, 4), 2, log_offset=-1)
    for name in ("log_offset", "deviation_floor"):
        with pytest.raises(UsageError, match=f"{name} has no effect on statistics that are not standardised"):
            tigra.build_network("S[1]", (4, 4), 2, standardise=False, **{name: 0.1})

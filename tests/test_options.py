"""One option, one place: from its field come the checks, the command line, JSON, and old names."""

import json
import re
import warnings
from dataclasses import dataclass, fields

import click
import numpy as np
import pytest
from click.testing import CliRunner
from tigra_cli.shared.field_options import HeadedCommand, field_options, given_fields, spelling

import tigra
from tigra.errors import UsageError
from tigra.experiments.recipe import Recipe
from tigra.option_fields import option
from tigra.options import BuildOptions, FitOptions, GraphOptions, ImageOptions, NetworkOptions

EVERY = pytest.mark.parametrize("options", [GraphOptions, ImageOptions, NetworkOptions, BuildOptions, FitOptions])


@dataclass(frozen=True, kw_only=True)
class MoreOptions(FitOptions):
    """A copy of FitOptions with one more option; nothing else was touched."""

    warm_up: float = option(0.1, "Share of the steps in which the rate rises.", heading="Training", least=0, most=1)
    order: str = option(
        "random", "Order of images: `random` or `given`.", heading="Training", choices=("random", "given")
    )
    mirror: bool = option(False, "Mirror images, too.", heading="Images", formerly="flip")


@click.command(cls=HeadedCommand)
@field_options(MoreOptions, first=("epochs",))
def command(**settings):
    """A command with these options."""
    click.echo(json.dumps(MoreOptions.of(given_fields(settings, MoreOptions)).to_json()))


def test_a_new_field_is_on_the_command_line_checked_and_saved():
    result = CliRunner().invoke(command, ["--warm-up", "0.3", "--order", "given", "--mirror"])
    saved = json.loads(result.stdout)
    assert (saved["warm_up"], saved["order"], saved["mirror"]) == (0.3, "given", True)
    assert MoreOptions.from_json(saved) == MoreOptions(warm_up=0.3, order="given", mirror=True)
    assert json.loads(CliRunner().invoke(command, ["--flip"]).stdout)["mirror"] is True
    assert json.loads(CliRunner().invoke(command, ["--no-mirror"]).stdout) == MoreOptions().to_json()
    for words, message in (
        (["--warm-up", "2"], "2.0 is not in the range 0<=x<=1"),
        (["--order", "x"], "'x' is not one of 'random', 'given'"),
        (["--warmup", "1"], "Did you mean"),
    ):
        result = CliRunner().invoke(command, words)
        assert result.exit_code == 2 and message in result.stderr
    with pytest.raises(UsageError, match="warm_up must be a number from 0 to 1, got nan"):
        MoreOptions(warm_up=float("nan"))


def test_help_stands_under_headings_with_what_most_users_need_first():
    text = CliRunner().invoke(command, ["--help"]).stdout
    assert text.index("Options:") < text.index("--epochs") < text.index("Training:") < text.index("--batch-size")
    assert text.index("Training:") < text.index("--warm-up") < text.index("Images:") < text.index("--mirror")
    assert "--flip" not in text


def test_the_ten_options_that_users_need_stand_first():
    from tigra_cli.train import train

    text = CliRunner().invoke(train, ["--help"]).stdout
    first = text[text.index("Options:") : text.index("Training:")]
    needed = "--out --resume --recipe --method --epochs --architecture --size --test-rotations --seed --threads --json"
    found = re.findall(r"^  (--[\w-]+)", first, re.MULTILINE)  # some versions of click show "-h, --help"
    assert [name for name in found if name != "--help"] == [*needed.split(), "--import"]


@EVERY
def test_every_option_says_what_it_does_and_has_a_default_that_it_allows(options):
    given = {"architecture": "S[1]", "image_shape": (4, 4), "n_classes": 2}
    made = options(**{name: value for name, value in given.items() if name in options.specs()})
    for name, spec in options.specs().items():
        assert spec.help.endswith(".") and len(spec.help) > 15, name
        assert f"\n{name} : " in options.__doc__, "the docstring lists all parameters"
        assert spec.checked(name, getattr(made, name)) == getattr(made, name)
    assert options.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_layers_that_options_name_exist():
    from tigra.models.kinds import FLOWS, LAYER_KINDS

    names = {*LAYER_KINDS, *(flow.last_name for flow in FLOWS.values()), *(flow.begin_name for flow in FLOWS.values())}
    for options in (BuildOptions, FitOptions):
        for name, spec in options.specs().items():
            assert set(spec.layers) <= names, name


@pytest.mark.parametrize(
    "given, message",
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"epochs": True}, "epochs must be a whole number of at least 1, got True"),
        ({"epochs": 1.0}, "epochs must be a whole number"),
        ({"learning_rate": 0}, "learning_rate must be a number above 0, got 0"),
        ({"learning_rate": float("inf")}, "learning_rate must be a number above 0, got inf"),
        ({"label_smoothing": 1}, "label_smoothing must be a number from 0 to below 1, got 1"),
        ({"jitter": "a"}, "jitter must be a number of pixels from 0 to 10, got 'a'"),
        ({"schedule": None}, "schedule must be one of one-cycle, constant, cosine, got None"),
        ({"epochs": 10**400}, r"epochs must be a whole number of at least 1, got 1000"),
        ({"epochs": 10**5000}, "got a huge number"),
        ({"jitter": 10**400}, "jitter must be a number of pixels"),
        ({"epochs": "x" * 1000}, r"got 'xxx.{60,80}\.\.\.\.$"),
    ],
)
def test_values_that_cannot_work_are_refused(given, message):
    with pytest.raises(UsageError, match=message):
        FitOptions(**given)


def test_numbers_become_those_that_json_knows():
    options = FitOptions(epochs=np.int64(3), learning_rate=np.float32(0.5), jitter=1)
    assert [type(value) for value in (options.epochs, options.learning_rate, options.jitter)] == [int, float, float]
    shape = NetworkOptions.of({"architecture": "S[1]", "neighbours": np.int64(4)})
    assert type(shape.neighbours) is int
    built = BuildOptions(architecture="S[1]", image_shape=np.array([3, 4]), n_classes=2, dtype=np.float64)
    assert built.image_shape == (3, 4) and built.dtype == "float64" and built.grid_shape == (3, 4)


def test_an_unknown_keyword_is_named_with_the_nearest_right_one(small_network, small_splits):
    with pytest.raises(UsageError, match="fit has no option 'learning_rat'; did you mean 'learning_rate'?"):
        tigra.fit(small_network(), small_splits, learning_rat=0.1)
    with pytest.raises(UsageError, match="build_network has no option 'smothing'; did you mean 'smoothing'?"):
        tigra.build_network("S[1]", (4, 4), 2, smothing=1.0)
    with pytest.raises(UsageError, match="mnist-012 has no option 'all_tests'; did you mean 'all_test'?"):
        tigra.load_dataset("mnist-012", all_tests=True)


def test_old_names_are_taken_with_a_warning():
    with pytest.warns(DeprecationWarning, match="'ground' is called 'background' now"):
        network = tigra.build_network("S[1]", (4, 4), 2, ground="border")
    assert network.options.background == "border"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tigra.build_network("S[1]", (4, 4), 2, ground="border")
        tigra.Standardise(np.zeros(2), np.ones(2), floor=0.1)
    assert [warning.filename for warning in caught] == [__file__] * 2, "they point at the user's line"
    with pytest.raises(UsageError, match="active_set twice"):
        tigra.SpectralConv(tigra.grid_graph((2, 2)), np.ones((1, 1)), np.ones(1), active="map", active_set="map")
    with pytest.warns(DeprecationWarning, match="'active' is called 'active_set' now"):
        layer = tigra.SpectralConv(tigra.grid_graph((2, 2)), np.ones((1, 1)), np.ones(1), active="union")
    assert layer.active_set == "union"
    with pytest.raises(UsageError, match="background twice"), pytest.warns(DeprecationWarning):
        tigra.build_network("S[1]", (4, 4), 2, ground="border", background="black")


def test_options_can_be_unpacked_and_read_like_a_dictionary():
    network = tigra.build_network("S[1]", (4, 4), 2, seed=3, margin=1)
    assert (tigra.build_network(**network.options).parameters == network.parameters).all()
    assert network.options["margin"] == 1 and dict(network.options)["seed"] == 3
    with pytest.raises(KeyError, match="no option 'margins'; did you mean 'margin'"):
        network.options["margins"]
    assert network.options.get("margins", 7) == 7 and len(network.options) == len(dict(network.options))
    assert (network.options | {"margin": 2})["margin"] == 2 and hash(network.options) == hash(network.options)


def test_two_recipes_that_say_the_same_are_equal():
    short = Recipe(network=NetworkOptions(architecture="S[1]"), fit=FitOptions())
    spelt = Recipe(network=NetworkOptions(architecture="S[1]", margin=0, mixing="vector"), fit=FitOptions(epochs=60))
    assert short == spelt == Recipe.from_json(json.loads(json.dumps(short.to_json())))
    assert short != short.with_changes({"margin": 1})


def test_spelling_and_fields_agree():
    assert spelling("batch_size") == "--batch-size"
    assert {entry.name for entry in fields(FitOptions)} == set(FitOptions.specs())

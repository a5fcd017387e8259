"""`tigra features`: invariant features of pictures as a table, for other programs."""

from __future__ import annotations

import click

from tigra.baselines.deepscat.deepscat import DeepScat, DeepScatOptions
from tigra.errors import ArchitectureError
from tigra.files.atomic import check_writable
from tigra.files.csv_rows import safe_path
from tigra.model_file import Model, load_model
from tigra.models.notation import parse_architecture

from .shared.data_options import Size
from .shared.options import ModelFile, import_option, json_option, threads_option
from .shared.output import Progress, print_json, say
from .shared.pictures import Tally, batches_of, invert_option, listed, paths_argument, recursive_option
from .shared.tables import feature_archive, write_table

SIZE = 32, 32  # of pictures for scattering features, by default


class FeatureModel(ModelFile):
    """A model file, the name of a model that comes with tigra, or W[order, octaves]."""

    def convert(self, value, param, ctx):
        """Return the path of the file, or the text."""
        return value if value.startswith("W[") else super().convert(value, param, ctx)


@click.command()
@click.argument("model", metavar="MODEL", type=FeatureModel())
@paths_argument
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False), help="File to write, FILE.npz or FILE.csv; see below."
)
@click.option(
    "--size", type=Size(), metavar=Size.name, help="W[order, octaves]: scale pictures to this size.  [default: 32x32]"
)
@recursive_option
@invert_option
@threads_option
@import_option
@json_option
@click.pass_context
def features(ctx, model, paths, out, size, recursive, invert, threads, as_json):
    """Write the features of pictures to a table.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra. Its features
    are the statistics that it computes before its dense layers. They hardly change when a picture is
    rotated or shifted. MODEL may also be W[order, octaves], the scattering features of DeepScat, which
    need no training. PATH is a picture or a folder of pictures.

    A CSV file has the columns path, one per feature (such as layer3_map5_T4_mean: the mean over all
    pixels of the fourth Chebyshev signal of map 5 in layer 3), and error. An .npz file has the arrays
    features, names, paths, error_paths and errors. The features are those before standardising.

    \b
    Example:
        tigra features mnist-012 photos --out photos.csv
        tigra features 'W[2, 4]' photos --size 48x48 --out photos.npz
    """
    if not out.endswith((".npz", ".csv")):
        raise click.UsageError(f"--out must end in .npz or .csv, got {out}.")
    check_writable(out, "the features", source=None if model.startswith("W[") else model)
    loaded = _loaded(model, size)
    names = loaded.network.feature_names()
    tally = Tally()
    with Progress() as progress, batches_of(loaded, listed(paths, recursive), invert, threads) as batches:
        parts = _parts(loaded.network, batches, threads, progress, tally)
        try:
            (_write_archive if out.endswith(".npz") else _write_csv)(out, names, parts)
        except KeyboardInterrupt:
            say(f"Stopped; {out} has the rows of the {tally.pictures} pictures so far.", err=True)
            ctx.exit(130)
    if as_json:
        print_json({"model": model, "out": out, "features": len(names), **tally.counts})
    else:
        n_good = tally.pictures - tally.errors
        say(f"{len(names)} features of {n_good} picture{'' if n_good == 1 else 's'}, {out}")
    tally.tell("the column error" if out.endswith(".csv") else "the array errors")
    ctx.exit(1 if tally.errors else 0)


def _loaded(model: str, size) -> Model:
    """Return the model of a file, or an unfitted DeepScat, whose features need no fitting."""
    if not model.startswith("W["):
        if size:
            raise click.UsageError("--size has no effect on a model, which has a size of its own; leave it out.")
        return load_model(model)
    items = parse_architecture(model)
    if len(items) != 1:
        raise ArchitectureError(f"Scattering features are W[order, octaves], got {model!r}.")
    if items[0].numbers[0] == 0:
        raise ArchitectureError(f"{model} has one feature, the mean; use an order of 1 or 2.")
    return Model(DeepScat(DeepScatOptions(architecture=f"{model}-PCA[1]", image_shape=size or SIZE, n_classes=2)))


def _parts(network, batches, threads, progress, tally: Tally):
    """Yield (paths, errors, features) of some pictures at a time."""
    progress.show("reading")
    for paths, errors, images in batches:
        yield paths, errors, network.features(images, threads) if len(images) else images[:0]
        for error in errors:
            tally.add(error)
        progress.show(f"{tally.pictures} pictures")


def _write_csv(out, names, parts) -> None:
    def lines():
        yield ["path", *names, "error"]
        for paths, errors, found in parts:
            rows = iter(found)
            for path, error in zip(paths, errors, strict=True):
                values = [""] * len(names) if error else [float(f"{value:.7g}") for value in next(rows)]
                yield [safe_path(path), *values, error]

    write_table(out, lines())


def _write_archive(out, names, parts) -> None:
    with feature_archive(out, names) as archive:
        for part in parts:
            archive.add(*part)

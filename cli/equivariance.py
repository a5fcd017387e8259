"""`tigra equivariance`: the resolution experiment of the paper's section 6.3."""

from __future__ import annotations

import json
import os
from itertools import chain, pairwise
from pathlib import Path

import click

from .shared.options import json_option, seed_option, threads_option
from .shared.output import Progress, print_json, say, table


@click.command()
@click.option(
    "--images",
    "folder",
    type=click.Path(exists=True, file_okay=False),
    help="Measure on the photographs in this folder.  [default: random images]",
)
@click.option("--count", type=click.IntRange(1, 1000), default=12, show_default=True,
              help="Number of random images; more give a more precise mean. No effect with --images.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False), help="Folder to write equivariance.json, .png and .svg to.")
@click.option("--interpolation", type=click.Choice(["cubic", "linear"]), default="cubic", show_default=True,
              help="How to interpolate images when they are rotated and shifted; linear blurs more.")  # fmt: skip
@click.option(
    "--antialias",
    is_flag=True,
    help="Smooth images before downsampling, as Pillow's bicubic filter does, to avoid aliasing.",
)
@click.option("--frame", type=click.Choice(["inner", "whole"]), default="inner", show_default=True,
              help="Pixels to compare: only those that the border does not influence, or all.")  # fmt: skip
@seed_option
@threads_option
@json_option
@click.pass_context
def equivariance(ctx, folder, count, out, interpolation, antialias, frame, seed, threads, as_json):
    """Measure how equivariant filters and products are to rotations and shifts, at five resolutions.

    This is the experiment of section 6.3 of the paper. Each image is down-sampled by t = 2 to 6, then
    transformed, filtered by 20 random filters of degree 4, and transformed back. The result is compared
    with the filtered image itself: the gap is their mean absolute difference, in grey levels. Without
    --images, smooth random images are used.

    Dot and cross products of gradients are measured the same way, for the image and its Laplacian. Their
    gap is a percentage of the mean absolute product.

    \b
    Example:
        tigra equivariance --out results
    """
    from tigra.theory.resolution import Protocol, run, summary

    protocol = Protocol(interpolation, antialias, frame)
    if out is not None:
        from tigra.figures.curves.resolution import require_matplotlib

        require_matplotlib()  # before any work
    images, n_images, source, notes = _images(folder, count, seed)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    gaps, stopped = [], False
    with Progress() as progress:
        progress.show("measuring")
        try:
            for gap in run(images, seed, protocol, threads):
                gaps.append(gap)
                progress.show(f"measured {len(gaps)} of {n_images} images", len(gaps), n_images)
        except KeyboardInterrupt:  # what was measured so far is still a result
            if not gaps:
                raise
            stopped = True
            notes.append(f"stopped after {len(gaps)} of {n_images} images")
    curves = summary(gaps)
    facts = _facts(curves, len(gaps), source, seed, protocol, notes)
    if out is not None:
        facts["files"] = _write(out, curves, facts)
    for note in notes:
        say(f"Note: {note}.", err=True)
    if as_json:
        print_json(facts)
    else:
        _show(curves, facts)
    if stopped:
        ctx.exit(130)


def _images(folder, count, seed):
    """Return (images, their number, a description of them, notes)."""
    from tigra.theory.resolution import LEAST_SIDE, band_limited_images

    if folder is None:
        images = band_limited_images(count, seed=seed)
        return images, len(images), f"band-limited random images of {images.shape[1]}x{images.shape[2]} pixels", []
    from tigra.errors import DatasetError
    from tigra.images.pictures import picture_size

    paths = sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_file() and entry.name[0] != ".")
    sizes = {path: picture_size(path) for path in paths}
    foreign = [path for path in paths if sizes[path] is None]
    small = [path for path in paths if (size := sizes[path]) and min(size) < LEAST_SIDE]
    usable = [path for path in paths if sizes[path] and path not in set(small)]
    notes = [f"{len(foreign)} files are not pictures and were left out"] if foreign else []
    notes += [f"{len(small)} pictures have fewer than {LEAST_SIDE} pixels a side and were left out"] if small else []
    images = _readable(usable, sizes, notes)
    first = next(images, None)  # fail before the output folder is made
    if first is None:
        raise DatasetError(
            f"{folder} has no readable picture of at least {LEAST_SIDE}x{LEAST_SIDE} pixels among its"
            f" {len(paths)} files; give a folder of photographs, or leave out --images."
            + "".join(f"\n{note}." for note in notes)
        )
    return chain([first], images), len(usable), f"pictures of {folder}", notes


def _readable(paths, sizes, notes):
    """Yield pictures one by one; a damaged picture is skipped and noted."""
    from tigra.errors import ImageError
    from tigra.images.pictures import read_image

    for path in paths:
        try:
            yield read_image(path, sizes[path])
        except ImageError as error:
            notes.append(f"left out: {str(error).rstrip('.')}")


def _facts(curves, n_images, source, seed, protocol, notes) -> dict:
    """Return the results as a dict, for JSON output and for equivariance.json."""
    from tigra.theory.resolution import DEGREE, DIAGONAL_WEIGHT, FACTORS, N_FILTERS

    points = [
        {
            "t": factor,
            **_point(curves["filters"], i),
            "dot": _point(curves["dot"], i),
            "cross": _point(curves["cross"], i),
        }
        for i, factor in enumerate(FACTORS)
    ]
    means = {name: [point.mean for point in points] for name, points in curves["filters"].items()}
    grows = {name: all(a < b for a, b in pairwise(m)) for name, m in means.items()}
    below = all(shift < rotation for rotation, shift in zip(means["rotation"], means["shift"], strict=True))
    return {
        "images": n_images, "source": source, "seed": seed, "filters": N_FILTERS, "degree": DEGREE,
        "norm": "mean absolute difference over nodes, in grey levels, then mean over filters",
        "products": f"of the gradients of y and L y, diagonal weight {DIAGONAL_WEIGHT}; gap divided by the mean size",
        **protocol._asdict(), "notes": notes, "points": points, "grows": grows, "shifts_below_rotations": below,
    }  # fmt: skip


def _point(curves: dict, i: int) -> dict:
    turned, shifted = curves["rotation"][i], curves["shift"][i]
    return {
        "rotation": {"mean": turned.mean, "std": turned.spread, "by_degrees": _keyed(turned.each)},
        "shift": {"mean": shifted.mean, "std": shifted.spread, "by_pixels": _keyed(shifted.each)},
    }


def _keyed(each: dict) -> dict:
    return {f"{amount:g}": value for amount, value in each.items()}


def _show(curves, facts) -> None:
    say(
        f"{facts['images']} {facts['source']},"
        f" {facts['filters']} filters of degree {facts['degree']}, seed {facts['seed']}"
    )
    smoothed = "smoothed first" if facts["antialias"] else "not smoothed"
    nodes = "nodes that no border reaches" if facts["frame"] == "inner" else "all nodes, zeros outside"
    say(f"mean absolute gap in grey levels, {nodes}; {facts['interpolation']} interpolation, {smoothed}")
    rows = [
        (turned.factor, *(f"{p.mean:.2e} +- {p.spread:.1e}" for p in (turned, shifted)))
        for turned, shifted in zip(*curves["filters"].values(), strict=True)
    ]
    say(table(rows, header=("t", "rotations", "shifts")))
    say(_growth(facts["grows"]))
    say(f"shifts lie below rotations {'at every t' if facts['shifts_below_rotations'] else 'NOT at every t'}")
    _show_products(curves)
    if "files" in facts:
        say(f"saved as {', '.join(facts['files'])}")


def _show_products(curves) -> None:
    say("dot and cross products of gradients: gap in % of the mean absolute product")
    four = [curves[kind][move] for kind in ("dot", "cross") for move in ("rotation", "shift")]
    rows = [
        (points[0].factor, *(f"{100 * p.mean:.3g} +- {100 * p.spread:.2g}" for p in points))
        for points in zip(*four, strict=True)
    ]
    say(table(rows, header=("t", "dot, rotations", "dot, shifts", "cross, rotations", "cross, shifts")))


def _growth(grows: dict) -> str:
    """Say in one sentence which of the curves grow."""
    grown, not_grown = (" and ".join(f"{name}s" for name in grows if grows[name] is kind) for kind in (True, False))
    if not grown:
        return f"the gap does NOT grow at every step of t, neither for {not_grown.replace(' and ', ' nor for ')}"
    return f"the gap grows at every step of t for {grown}" + (f", but NOT for {not_grown}" if not_grown else "")


def _write(out, curves, facts) -> list[str]:
    """Write the numbers and the figure; return the paths of the files."""
    from tigra.figures.curves.resolution import draw
    from tigra.model_file import write_atomically

    files = {f"equivariance.{kind}": content for kind, content in draw(curves["filters"], facts).items()}
    facts = facts | {"files": [str(Path(out, name)) for name in ("equivariance.json", *files)]}
    write_atomically(Path(out, "equivariance.json"), (json.dumps(facts, indent=2) + "\n").encode())
    for name, content in files.items():
        write_atomically(Path(out, name), content)
    return facts["files"]

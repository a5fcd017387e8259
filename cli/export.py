"""`tigra export`: write a model as an ONNX file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from tigra.errors import TigraError
from tigra.model_file import check_writable, load_model

from .shared.options import import_option, json_option, model_argument, packaged_name, threads_option
from .shared.output import Progress, print_json, say

LARGEST_DIFFERENCE = 1e-3  # of a probability; rounding gives about 1e-6


@click.command()
@model_argument
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="File to write.  [default: MODEL.onnx]")
@click.option(
    "--opset",
    type=int,
    default=17,
    show_default=True,
    help="Version of the ONNX operators; lower it for a runtime that is too old for the file.",
)
@threads_option
@import_option
@json_option
def export(model, out, opset, threads, as_json):
    """Write a model as an ONNX file, to run it without tigra.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra. The file takes
    images, prepares them as in training, and gives label, probabilities and features (docs/deploy.md). If
    onnxruntime is installed, the command runs the file on 100 drawn images and compares the probabilities
    with tigra's. It needs the package onnx: pip install 'tigra[onnx]'.

    \b
    Example:
        tigra export mnist-012.npz --out mnist-012.onnx
    """
    from tigra.onnx import export_onnx

    network = load_model(model).network
    out = out or f"{packaged_name(model) or Path(model).stem}.onnx"
    check_writable(out, "the ONNX file", source=model)
    export_onnx(network, out, opset)
    size = os.path.getsize(out)
    with Progress() as progress:
        progress.show("comparing with onnxruntime")
        found = _compared(network, out, threads)
    facts = {"model": model, "out": out, "opset": opset, "bytes": size}
    difference = None if found is None else float(f"{found.difference:.2g}")
    checked = {"difference": difference, "labels_that_differ": None if found is None else found.n_labels}
    if as_json:
        print_json(facts | checked)
    else:
        height, width, *colour = network.image_shape
        kind = " in colour" if colour else ""
        say(f"{out}: {size / 1000:.0f} kB, opset {opset}, images of {height}x{width}{kind}")
    if found is not None and found.difference > LARGEST_DIFFERENCE:
        raise TigraError(
            f"{out} does not compute what {model} does: a probability differs by {found.difference:.2g} in onnxruntime"
            f" {found.runtime}; do not use it, and try another --opset."
        )
    if not as_json:
        say(_in_words(found))


def _compared(network, out, threads):
    """Compare the file with the network; return None if onnxruntime is not installed."""
    from tigra.errors import UsageError
    from tigra.onnx import checking
    from tigra.onnx.export import needed

    try:
        needed("onnxruntime")
    except UsageError:
        return None
    return checking.compare(network, out, threads=threads)


def _in_words(found) -> str:
    if found is None:
        return "not checked, because onnxruntime is not installed: pip install 'tigra[onnx]'"
    labels = "no label differs" if not found.n_labels else f"{found.n_labels} labels differ"
    return f"largest difference on 100 images: {found.difference:.1e} (onnxruntime {found.runtime}), {labels}"

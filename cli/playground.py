"""`tigra playground`: a page in the browser that shows a network at work."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from tigra.model_file import load_model, packaged_models

from .shared.options import ModelFile, import_option, json_option
from .shared.output import print_json, say

BESIDE = "mnist-012-convnet"  # comes with tigra


@click.command()
@click.argument("model", metavar="[MODEL]", type=ModelFile(), required=False)
@click.option("--beside", metavar="MODEL", type=ModelFile(), help="Network to compare with, for the same images.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="a free one",
    help="Port on this machine; choose one if you want the address to stay the same.",
)
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in the browser.")
@json_option
@import_option
def playground(model, beside, port, browser, as_json):
    """Show a network at work on a page in the browser.

    MODEL is a model file of a TIGraNet, or the name of a model that comes with tigra; by default those that
    come with tigra. Draw a digit or open a picture, turn, shift and mirror it, and watch the label, the
    features and the feature maps, beside those of a ConvNet. Change filters and rules, and see what breaks
    the invariance. The page is served on this machine only, and needs no internet. Ctrl-C ends it.

    \b
    Example:
        tigra playground
    """
    from tigra.playground.answers import Answers
    from tigra.playground.server import PlaygroundServer

    models, other = _models(model, beside)
    with PlaygroundServer(Answers(models, other), port) as server:
        try:
            if as_json:
                print_json({"address": server.address})
            else:
                say(f"The playground is at {server.address}; Ctrl-C ends it.")
            if browser:
                webbrowser.open(server.address)
            server.serve_forever()
        except KeyboardInterrupt:
            say("Stopped.", err=True)


def _models(model, beside):
    """Return the TIGraNets by name, and the network to compare with; all have the same images and classes."""
    from tigra.playground.tracing import has_graph

    packaged = {name: load_model(path).network for name, path in packaged_models().items()}
    networks = {Path(model).stem.removeprefix("model-"): load_model(model).network} if model else {}
    first = next(iter((networks or packaged).values()))
    networks |= {name: network for name, network in packaged.items() if has_graph(network) and _fits(network, first)}
    other = load_model(beside).network if beside else packaged.get(BESIDE)
    if beside and not _fits(other, first):
        raise click.UsageError("The network beside must be for images of the same size and the same classes.")
    return networks, other if other is not None and _fits(other, first) else None


def _fits(network, first) -> bool:
    return network.image_shape == first.image_shape and network.class_names == first.class_names

"""`tigra playground`: a page in the browser that shows a network at work."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path

import click

from tigra.model_file import load_model, packaged_models

from .shared.options import ModelFile, import_option, json_option, packaged_name
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

    answers = Answers(*_models(model, beside))
    with _listening(PlaygroundServer, answers, port) as server:
        try:
            if as_json:
                print_json({"address": server.address})
            else:
                say(f"The playground is at {server.address}; Ctrl-C ends it.")
            if browser:
                threading.Thread(target=webbrowser.open, args=(server.address,), daemon=True).start()  # w3m blocks
            server.serve_forever()
        except KeyboardInterrupt:
            say("Stopped.", err=True)


def _listening(kind, answers, port: int):
    try:
        return kind(answers, port)
    except OSError as error:
        raise click.UsageError(
            f"Cannot listen on port {port}: {error.strerror or error}; choose another --port, or leave it out."
        ) from error


def _models(model, beside):
    """Return the TIGraNets by name, the network to compare with, and its name; all have the same images and classes."""
    from tigra.playground.tracing import has_graph

    packaged = {name: load_model(path).network for name, path in packaged_models().items()}
    networks = {_name(model): load_model(model).network} if model else {}
    first = next(iter((networks or packaged).values()))
    others = {name: network for name, network in packaged.items() if has_graph(network) and _fits(network, first)}
    networks = {**networks, **others, **networks}  # in this order, and a file goes before a packaged model
    other, name = (load_model(beside).network, _name(beside)) if beside else (packaged.get(BESIDE), "ConvNet")
    if beside and not _fits(other, first):
        raise click.UsageError("The network beside must be for images of the same size and the same classes.")
    return networks, other if other is not None and _fits(other, first) else None, name


def _name(model: str) -> str:
    """Return the name of a model that comes with tigra, or that of the file with its ending."""
    return packaged_name(model) or Path(model).name


def _fits(network, first) -> bool:
    return network.image_shape == first.image_shape and network.class_names == first.class_names

"""`tigra info`: show what is in a model file."""

from __future__ import annotations

import click

from tigra.model_file import load_model
from tigra.options import GraphOptions

from .shared.options import import_option, json_option, model_argument
from .shared.output import percent, print_json, say, table


@click.command()
@model_argument
@import_option
@json_option
def info(model, as_json):
    """Show the architecture, options and training results of a model.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra.

    \b
    Example:
        tigra info mnist-012.npz
    """
    loaded = load_model(model)
    network, training = loaded.network, loaded.training
    layers = [
        {
            "layer": type(layer).__name__,
            "parameters": sum(array.size for array in layer.params.values()),
            "shapes": {name: list(array.shape) for name, array in (layer.params | layer.state).items()},
        }
        for layer in network.layers
    ]
    content = {
        "model": model,
        "architecture": network.options.architecture,
        "parameters": network.n_parameters,
        "options": network.options.to_json(),
        "class_names": network.class_names,
        "layers": layers,
        "dataset": training.get("dataset"),
        "best_epoch": training.get("best_epoch"),
        "epochs": len(training.get("history", [])),
        "finished": loaded.resume is None,
        "accuracy": training.get("accuracy"),
    }
    graph = network.own_graph
    if graph is not None:
        content["graph"] = {"nodes": graph.n_nodes, "edges": int(graph.adjacency.nnz) // 2}
    if as_json:
        print_json(content)
        return
    say(f"{content['architecture']}, {content['parameters']} parameters")
    hidden = {"architecture"} | (set(GraphOptions.specs()) if graph is not None else set())
    say(", ".join(f"{name} {value}" for name, value in network.options.items() if name not in hidden))
    if graph is not None:
        say(f"graph of its own: {content['graph']['nodes']} nodes, {content['graph']['edges']} edges")
    say(f"classes: {', '.join(network.class_names)}\n")
    rows = [
        (number, entry["layer"], entry["parameters"], _shapes(entry["shapes"])) for number, entry in enumerate(layers)
    ]
    say(table(rows, header=("", "layer", "parameters", "arrays")))
    if content["dataset"] and content["finished"] and not content["epochs"]:  # DeepScat has no epochs
        say(f"\nfitted on {content['dataset']}")
    elif content["dataset"]:
        state = "finished" if content["finished"] else "interrupted, continue with tigra train --resume"
        epochs = f"{content['epochs']} epoch{'s' if content['epochs'] != 1 else ''}"
        say(f"\ntrained on {content['dataset']}, {epochs} ({state}), best {content['best_epoch']}")
    if content["accuracy"]:
        say(", ".join(f"{name} {percent(value)}" for name, value in content["accuracy"].items()))


def _shapes(shapes: dict) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in shapes.items())

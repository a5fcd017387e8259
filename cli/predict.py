"""`tigra predict`: labels and probabilities for picture files."""

from __future__ import annotations

import click
import numpy as np
from tigra_cli.options import EXISTING_FILE, json_option, model_argument, threads_option
from tigra_cli.output import Progress, percent, print_json

from tigra.errors import ImageError
from tigra.images import read_image
from tigra.model_file import load


@click.command()
@model_argument
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True, type=EXISTING_FILE)
@click.option("--invert", is_flag=True, help="For dark ink on light paper, if the model learned light on dark.")
@threads_option
@json_option
@click.pass_context
def predict(ctx, model, images, invert, threads, as_json):
    """Name the class of each IMAGE.

    Any picture that Pillow opens. It becomes grey, and is scaled to the model's size without
    being stretched. Pictures that cannot be read are named on standard error; the others are
    still predicted, and the exit status is 1.

    \b
    Example:
        tigra predict mnist-012.npz digit.png
    """
    network = load(model)
    arrays, results = [], []
    with Progress() as progress:
        for number, path in enumerate(images):
            progress.show(f"reading {number + 1}/{len(images)}", number, len(images))
            try:
                arrays.append(read_image(path, network.image_shape, invert))
                results.append({"image": path})
            except ImageError as error:
                results.append({"image": path, "error": str(error)})
        progress.show("predicting")
        probabilities = iter(network.predict_proba(np.array(arrays), threads)) if arrays else iter(())
    for result in results:
        if "error" not in result:
            row = [round(float(p), 6) for p in next(probabilities)]
            result["label"] = network.class_names[int(np.argmax(row))]
            result["probabilities"] = dict(zip(network.class_names, row, strict=True))
    if as_json:
        print_json({"model": model, "predictions": results})
    for result in results:
        if "error" in result:
            click.echo(f"Error: {result['error']}", err=True)
        elif not as_json:
            each = ", ".join(f"{name}: {percent(p)}" for name, p in result["probabilities"].items())
            click.echo(f"{result['image']}: {result['label']}  ({each})")
    if any("error" in result for result in results):
        ctx.exit(1)

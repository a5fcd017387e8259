"""`tigra predict`: predict labels and probabilities for picture files."""

from __future__ import annotations

import click
import numpy as np

from tigra.errors import ImageError
from tigra.images.pictures import read_image
from tigra.model_file import load_model

from .shared.options import (
    import_option,
    json_option,
    model_argument,
    threads_option,
)
from .shared.output import Progress, percent, print_json, say

SHOWN = 5  # classes printed; with more, only the three most likely


@click.command()
@model_argument
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--invert",
    is_flag=True,
    help="Invert the pictures. Use it for dark objects on a light background if the model was trained on light objects"
    " on a dark background, or the other way round.",
)
@threads_option
@import_option
@json_option
@click.pass_context
def predict(ctx, model, images, invert, threads, as_json):
    """Predict the class of each IMAGE.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra. IMAGE is any
    picture that Pillow can open. It is converted to grey and scaled to the model's image size with its
    aspect ratio kept. If a picture cannot be read, the command reports it on standard error, predicts
    the others, and ends with exit status 1.

    \b
    Example:
        tigra predict mnist-012.npz digit.png
    """
    loaded = load_model(model)
    network = loaded.network
    invert ^= loaded.training.get("dataset_options", {}).get("invert") is True
    arrays, results = [], []
    with Progress() as progress:
        for number, path in enumerate(images):
            progress.show(f"reading {number + 1}/{len(images)}", number, len(images))
            try:
                arrays.append(read_image(path, network.image_shape, invert))
                results.append({"image": path})
            except ImageError as error:
                results.append({"image": path, "error": str(error)})
        progress.show(f"predicting {len(arrays)} images")
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
            say(f"Error: {result['error']}", err=True)
        elif not as_json:
            say(f"{result['image']}: {result['label']}  ({_in_words(result['probabilities'])})")
    if any("error" in result for result in results):
        ctx.exit(1)


def _in_words(probabilities: dict[str, float]) -> str:
    """List the classes with their probabilities; if there are many, only the most likely ones.

    >>> _in_words({"cat": 0.25, "dog": 0.75})
    'cat: 25.0 %, dog: 75.0 %'
    """
    listed = list(probabilities.items())
    if len(listed) > SHOWN:
        first = sorted(listed, key=lambda item: -item[1])[:3]
        listed = [*first, ("others", 1 - sum(sorted(probabilities.values())[-3:]))]
    return ", ".join(f"{name}: {percent(p)}" for name, p in listed)

"""Judgement of pictures: label and probabilities, doubts, and heat maps."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import numpy as np

from tigra.errors import UsageError
from tigra.experiments.report.heat import heat_maps, heat_picture
from tigra.files.atomic import write_atomically
from tigra.model_file import Model
from tigra.models.network import Network
from tigra.training.familiarity import Familiar
from tigra.training.views import Views

UNSURE, UNLIKE = "low probability", "unlike the training pictures"
LONGEST_NAME = 150  # characters of the name of a heat map


class Judge:
    """Predicts batches of pictures.

    Parameters
    ----------
    loaded : Model
        The model.
    reject : float
        Pictures whose highest probability is below get no label.
    explain : str or None
        Folder for heat maps, made if it does not exist.
    views : int
        Number of angles at which pictures are looked at (`tigra.training.views`); distances and heat maps are of the
        picture as it is.
    """

    def __init__(self, loaded: Model, reject: float = 0.0, explain: str | None = None, views: int = 1):
        self.network, self.reject, self.explain = loaded.network, reject, explain
        self.looks = Views(loaded.network, views) if views > 1 else loaded.network
        found = loaded.training.get("familiar")
        self.familiar = found if isinstance(found, Familiar) and isinstance(loaded.network, Network) else None
        self.names: set[str] = set()
        if explain:
            if not isinstance(loaded.network, Network):
                raise UsageError(f"--explain needs a trained network, got a model of kind {loaded.network.kind!r}.")
            os.makedirs(explain, exist_ok=True)

    def __call__(self, paths: list[str], images: np.ndarray, threads: int = 1) -> list[dict]:
        """Return {"image", "label", "probabilities", "doubt"} of each picture, and "distance" if it is known."""
        if not paths:
            return []
        names, found = self.network.class_names, []
        probabilities, distances = self._measured(images, threads)
        for path, row, distance in zip(paths, probabilities, distances, strict=True):
            rounded = [round(float(p), 6) for p in row]
            is_unsure = max(rounded) < self.reject
            is_unlike = distance is not None and distance > 1
            doubts = ", ".join(text for text, holds in ((UNSURE, is_unsure), (UNLIKE, is_unlike)) if holds)
            label = None if is_unsure else names[int(np.argmax(rounded))]
            entry = {"image": path, "label": label, "probabilities": dict(zip(names, rounded, strict=True))}
            found.append(entry | ({} if distance is None else {"distance": distance}) | {"doubt": doubts})
        if self.explain:
            for path, image, heat in zip(paths, images, heat_maps(self.network, images), strict=True):
                self._write(path, image, heat)
        return found

    def _measured(self, images, threads) -> tuple[np.ndarray, list]:
        """Return probabilities and distances; the layers before the last run once for both."""
        if self.familiar is None or not isinstance(self.network, Network):
            return self.looks.predict_proba(images, threads), [None] * len(images)
        embedding = self.network.embedding(images, threads)
        distances = [round(float(distance), 4) for distance in self.familiar.distances(embedding)]
        scores = self.network.replica().layers[-1].forward(np.ascontiguousarray(embedding.T)).T
        if isinstance(self.looks, Views):
            scores = self.looks.averaged(scores, images, threads)
        return self.network.probabilities(scores), distances

    def _write(self, path: str, image: np.ndarray, heat: np.ndarray) -> None:
        """Write a heat map as a picture; its name is the path of the picture with all separators replaced."""
        assert self.explain is not None
        stem = re.sub(r"[^\w.-]+", "_", path, flags=re.ASCII).strip("._")[-LONGEST_NAME:] or "picture"
        name, number = f"{stem}.png", 1
        while name in self.names:
            number += 1
            name = f"{stem}-{number}.png"
        self.names.add(name)
        file = io.BytesIO()
        heat_picture(image, heat).save(file, "PNG")
        write_atomically(Path(self.explain, name), file.getvalue(), "--explain")

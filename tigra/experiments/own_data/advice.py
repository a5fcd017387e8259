"""What is said before a training on pictures of your own."""

from __future__ import annotations

import numpy as np

from tigra.datasets.splits import Splits

FEW = 5  # training images of a class
N_LISTED = 3  # classes in a sentence
MOST_FOLDS = 5


def on_few_images(splits: Splits, is_folded: bool = False) -> tuple[str, ...]:
    """Return sentences if classes have fewer than 5 training images, or no validation image.

    Parameters
    ----------
    splits : Splits
        The data set.
    is_folded : bool
        Whether the training is a cross-validation, which draws its own validation images; otherwise one is suggested.

    Returns
    -------
    tuple of str
        Sentences without their full stops, or nothing.
    """
    parts = splits.train, splits.valid, splits.test_upright
    counts = np.array([np.bincount(part.labels, minlength=len(splits.class_names)) for part in parts])
    few = [int(place) for place in np.argsort(counts[0], kind="stable") if counts[0, place] < FEW]
    said: list[str] = []
    if few:
        names = _listed([f"{splits.class_names[place]} ({counts[0, place]})" for place in few])
        words = f"these classes have fewer than {FEW} training pictures: {names}; results depend on chance,"
        words += " add pictures"
        n_folds = min(MOST_FOLDS, int(counts.sum(axis=0).min()))
        if not is_folded and n_folds > 1:
            words += f", and use --folds {n_folds} to see how much they vary"
        said.append(words)
    if not is_folded and not counts[1].all():
        names = _listed([splits.class_names[place] for place in np.flatnonzero(counts[1] == 0)])
        said.append(
            f"there is no validation picture of {names}, so the best epoch is chosen without regard to them; add some,"
            " or give no validation pictures, then they are drawn from all classes"
        )
    return tuple(said)


def _listed(names: list[str]) -> str:
    """Return the first few names.

    >>> _listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = len(names) - N_LISTED
    return ", ".join(names[:N_LISTED]) + (f" and {more} more" if more > 0 else "")

"""What is said before a training on pictures of your own."""

from __future__ import annotations

import numpy as np

from tigra.datasets.splits import Splits

FEW = 5  # training images of a class
N_LISTED = 3  # classes in a sentence
MOST_FOLDS = 5


def on_few_images(splits: Splits, is_folded: bool = False) -> tuple[str, ...]:
    """Return a sentence if some classes have fewer than 5 training images.

    Parameters
    ----------
    splits : Splits
        The data set.
    is_folded : bool
        Whether the training is a cross-validation; otherwise one is suggested.

    Returns
    -------
    tuple of str
        A sentence without its full stop, or nothing.
    """
    parts = splits.train, splits.valid, splits.test_upright
    counts = np.array([np.bincount(part.labels, minlength=len(splits.class_names)) for part in parts])
    few = [int(place) for place in np.argsort(counts[0], kind="stable") if counts[0, place] < FEW]
    if not few:
        return ()
    names = ", ".join(f"{splits.class_names[place]} ({counts[0, place]})" for place in few[:N_LISTED])
    names += f" and {len(few) - N_LISTED} more" if len(few) > N_LISTED else ""
    said = f"these classes have fewer than {FEW} training pictures: {names}; results depend on chance, add pictures"
    n_folds = min(MOST_FOLDS, int(counts.sum(axis=0).min()))
    if not is_folded and n_folds > 1:
        said += f", and use --folds {n_folds} to see how much they vary"
    return (said,)

"""What follows from an architecture text alone: its layers, options without effect, and pooling for smaller images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tigra.errors import UsageError
from tigra.models.kinds import FLOWS, LAYER_KINDS, Item
from tigra.models.notation import format_architecture, parse_architecture
from tigra.options import BuildOptions, FitOptions


def expanded(items: list[Item]) -> list[Item]:
    """Add to the layers of an architecture those that their kinds imply.

    Parameters
    ----------
    items : list of Item
        The layers as written.

    Returns
    -------
    list of Item
        The layers, with those that each kind adds after itself.
    """
    pairs = zip(items, [*items[1:], None], strict=True)
    return [new for item, following in pairs for new in LAYER_KINDS[item.name].expanded(item, following)]


def layer_names(architecture: str) -> set[str]:
    """Names of the layers of an architecture, including implicit ones.

    Parameters
    ----------
    architecture : str
        Layers in the paper's notation.

    Returns
    -------
    set of str
        Names as in the notation; the last linear layer is called "linear".

    Examples
    --------
    >>> sorted(layer_names("SC[3, 3]-S[4]"))
    ['S', 'SC', 'linear']
    """
    items = expanded(parse_architecture(architecture))
    names, gives = {item.name for item in items}, "image"
    for item in items:
        kind = LAYER_KINDS[item.name]
        if gives == "image" and kind.takes in FLOWS:
            names.add(FLOWS[kind.takes].begin_name)
        gives = kind.gives
    flow = FLOWS.get(gives)
    if flow is not None:
        names.add(FLOWS["features"].last_name if flow.to_features else flow.last_name)
    return names - {""}


def check_effects(given: Mapping[str, Any], architecture: str, spelling: Callable[[str], str] = str) -> None:
    """Reject options that no layer of the architecture uses.

    Parameters
    ----------
    given : mapping
        The options that the user has set.
    architecture : str
        Layers in the paper's notation.
    spelling : callable
        From the name of an option to how the user writes it, for the message.

    Raises
    ------
    UsageError
        If an option has no effect.
    """
    names = layer_names(architecture)
    used = {option for name in names if name in LAYER_KINDS for option in LAYER_KINDS[name].uses}
    specs = BuildOptions.specs() | FitOptions.specs()
    for name in given:
        spec = specs.get(name)
        if spec is None or not spec.layers or name in used:
            continue
        missing = [layer for layer in spec.layers if layer not in names]
        if missing and (spec.needs_all or len(missing) == len(spec.layers)):
            layers = [layer for layer in missing if layer in LAYER_KINDS]
            written = " and ".join(layers) if spec.needs_all else " or ".join(layers)
            raise UsageError(
                f"{spelling(name)} has no effect here: it needs {written} layers, and {architecture} has none;"
                " leave it out."
            )


def with_pooling_limited(architecture: str, n_nodes: int) -> str:
    """Limit the pooling of an architecture to what a graph of n_nodes can keep.

    The first DP keeps at most half of the nodes, the next a quarter, and so on. Coarsening divides their number, too.

    Parameters
    ----------
    architecture : str
        Layers in the paper's notation.
    n_nodes : int
        Number of nodes of the graph.

    Returns
    -------
    str
        The adapted architecture.

    Examples
    --------
    >>> with_pooling_limited("SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[4]", 256)
    'SC[3, 3]-DP[128]-SC[6, 3]-DP[64]-S[4]'
    """
    items, limit = parse_architecture(architecture), n_nodes
    for place, item in enumerate(items):
        if item.name == "GC":
            limit = max(1, limit // int(item.numbers[0]) ** 2)
        if item.name == "DP":
            limit = max(1, limit // 2)
            items[place] = item._replace(numbers=(min(item.numbers[0], limit),))
    return format_architecture(items)

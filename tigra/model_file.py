"""Model files: one zip file with everything needed to predict and to resume training. Loading executes nothing.

    meta.json                      format, version, kind of model, its options, class names, training
    layers/00.SpectralConv.alpha.npy ...   parameters and constants, one array per file
    graph/*.npy                    the custom graph, if the network has one
    familiar/*.npy                 features of training images, to notice unusual ones
    learned/pictures.npy           which pictures it was trained on (`tigra.datasets.learned`), sorted
    resume/*.npy                   the state of a training run, finished or not

`numpy.load` can open the file, too. Members are stored uncompressed, so a file cannot unpack to more than its own
size. Files are not trusted: names, sizes, shapes, dtypes and checksums must match the architecture before an array is
created.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import numpy as np

from tigra.datasets.learned import Learned
from tigra.errors import ModelFileError, TigraError, UnknownLayerError
from tigra.files.atomic import check_writable, write_atomically
from tigra.graph import Graph, GridGraph
from tigra.model_arrays import LEARNED, array_in, familiar_in, graph_arrays, graph_in, learned_in, packed
from tigra.models.classifier import MODEL_KINDS, Classifier
from tigra.models.network import Network
from tigra.option_fields import short
from tigra.options import LARGEST_IMAGE
from tigra.training.familiarity import Familiar
from tigra.version import __version__

__all__ = ["Model", "check_writable", "load", "load_model", "save", "write_atomically"]
FORMAT, FORMAT_VERSION = "tigra model", 2  # version 1 (tigra 0.1) has no kind and uses old option names
RESUME_ARRAYS = "current", "best", "adam_mean", "adam_square"
LARGEST_META = 16 * 2**20  # bytes


class NewerFormat(Exception):
    """A model file with a newer format than this version of tigra can read."""


@dataclass
class Model:
    """Contents of a model file.

    Attributes
    ----------
    network : Classifier
        The trained or fitted model.
    training : dict
        Facts about the training: data set, accuracies, best epoch.
    resume : (dict, dict) or None
        State of the training run, as returned by `Training.snapshot`.
    """

    network: Classifier
    training: dict = field(default_factory=dict)
    resume: tuple[dict, dict] | None = None


def save(network: Classifier, path, training: dict | None = None, resume: tuple[dict, dict] | None = None) -> None:
    """Save a trained model.

    The file is written atomically: it appears complete or not at all.

    Parameters
    ----------
    network : Network or DeepScat
        The model to save.
    path : str or Path
        Target file, replaced if it exists.
    training : dict, optional
        Facts about the training, stored as JSON.
    resume : (dict, dict), optional
        State of the training run, as returned by `Training.snapshot`.

    Raises
    ------
    ModelFileError
        If the model cannot be saved, for instance because it was not made by `build_network`.
    """
    _check_complete(network)
    graph = network.own_graph
    training = dict(training or {})
    learned, familiar = training.pop("learned", None), training.pop("familiar", None)
    meta = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "tigra": __version__,
        "kind": network.kind,
        "options": network.options.to_json(),
        "class_names": network.class_names,
        "training": training,
        "resume": resume[1] if resume else None,
    }
    arrays = dict(_named_arrays(network))
    if network.temperature != 1:
        meta["temperature"] = network.temperature
    if isinstance(familiar, Familiar):
        meta["familiar"] = {"images": len(familiar.features), "inputs": len(familiar.scale), "limit": familiar.limit}
        arrays |= {"familiar/features": familiar.features, "familiar/scale": familiar.scale}
    if isinstance(learned, Learned):
        meta["learned"] = {"pictures": len(learned), "shape": list(learned.shape)}
        arrays[LEARNED] = learned.numbers
    if graph is not None:
        meta["graph"] = {"nodes": graph.n_nodes, "edges": int(graph.adjacency.nnz)}
        if isinstance(graph, GridGraph):  # its gradient needs the coordinates
            meta["graph"]["grid"] = graph.arguments
        arrays |= graph_arrays(graph)
    if resume:
        arrays |= {f"resume/{name}": resume[0][name] for name in RESUME_ARRAYS}
    write_atomically(path, packed(meta, arrays))


def load(path) -> Classifier:
    """Load a model that was saved with `save`, or one that comes with tigra.

    Parameters
    ----------
    path : str or Path
        Model file, or the name of a model that comes with tigra, such as "mnist-012". If there is a file of that
        name, it is loaded.

    Returns
    -------
    Network or DeepScat
        The model, ready to predict.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is damaged, or was written by a newer version.

    Examples
    --------
    >>> load("mnist-012").class_names
    ['0', '1', '2']
    """
    return load_model(path).network


def load_model(path) -> Model:
    """Load a model together with facts about its training and the state to resume.

    Parameters
    ----------
    path : str or Path
        Model file, or the name of a model that comes with tigra.

    Returns
    -------
    Model
        Everything in the file; errors as for `load`.
    """
    path = _found(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise ModelFileError("it is not an ordinary file")
        with zipfile.ZipFile(path) as archive:
            return _unpacked(archive)
    except UnknownLayerError as error:
        raise ModelFileError(
            f"{path} has the layer {error.name[:40]}, which is not registered; import the module that registers it"
            " first, on the command line with --import MODULE."
        ) from error
    except NewerFormat as error:
        raise ModelFileError(f"{path} was written by a newer tigra; update tigra to read it.") from error
    except (TigraError, zipfile.BadZipFile) as error:
        reason = str(error).rstrip(".") if isinstance(error, TigraError) else "truncated, or another format"
        raise ModelFileError(
            f"{path} is damaged or not a tigra model file ({reason}); train a new one with 'tigra train'."
        ) from error
    except FileNotFoundError as error:
        names = ", ".join(packaged_models()) or "none"
        raise ModelFileError(
            f"Cannot read the model file {path}: {error.strerror}; models that come with tigra: {names}."
        ) from error
    except OSError as error:
        raise ModelFileError(f"Cannot read the model file {path}: {error.strerror or error}.") from error
    except Exception as error:  # a malicious file can make any parser fail; nothing was executed
        raise ModelFileError(
            f"{path} is damaged or not a tigra model file ({type(error).__name__}); train a new one with 'tigra train'."
        ) from error


def _check_complete(network: Classifier) -> None:
    """Reject models that `load` could not read back."""
    if network.obstacle:
        raise ModelFileError(f"{network.obstacle}, so it is not saved.")
    if network.kind not in MODEL_KINDS:
        raise ModelFileError(
            f"Models of kind {network.kind!r} cannot be saved: files hold {', '.join(MODEL_KINDS)}; register the kind."
        )
    if not _are_names(network.class_names, network.n_classes):
        raise ModelFileError(f"class_names must be {network.n_classes} printable texts, got {network.class_names!r}.")
    if not all(np.isfinite(array).all() for _, array in _named_arrays(network)):
        raise ModelFileError("The network has parameters that are not finite, so it is not saved; train it again.")


def _are_names(names, n_classes: int) -> bool:
    return isinstance(names, list) and len(names) == n_classes and all(map(_is_printable, names))


def _is_printable(text) -> bool:
    """Whether it is a text without control characters, which could affect a terminal."""
    return isinstance(text, str) and text.isprintable()


def _named_arrays(network: Classifier):
    """(name, array) of every parameter and constant, in the order of the layers."""
    for number, layer in enumerate(network.layers):
        for name, array in (layer.params | layer.state).items():
            yield f"layers/{number:02d}.{type(layer).__name__}.{name}", array


def _unpacked(archive: zipfile.ZipFile) -> Model:
    members = {info.filename: info for info in archive.infolist()}
    if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
        raise ModelFileError("its members are compressed")
    meta = _meta(archive, members)
    assert archive.fp is not None  # it is open
    file_size = os.fstat(archive.fp.fileno()).st_size
    graph, of_graph = graph_in(archive, members, meta.get("graph"), file_size)
    network = _network(meta, graph, file_size)
    expected = dict(_named_arrays(network))
    if meta["resume"] is not None:
        if not isinstance(network, Network):
            raise ModelFileError("it cannot be resumed, since models of this kind are not trained step by step")
        expected |= {f"resume/{name}": network.learned for name in ("current", "best")}
        expected |= {f"resume/{name}": network.parameters for name in ("adam_mean", "adam_square")}
    learned, of_learned = learned_in(archive, members, meta, network.image_shape, file_size)
    familiar, of_familiar = familiar_in(archive, members, meta)
    meta["training"].pop("learned", None)
    meta["training"].pop("familiar", None)
    meta["training"] |= {"familiar": familiar} if familiar is not None else {}
    meta["training"] |= {"learned": learned} if learned is not None else {}
    if set(members) != {"meta.json", *of_learned, *of_familiar, *(f"{name}.npy" for name in (*expected, *of_graph))}:
        raise ModelFileError("its arrays are not those of its architecture")
    found = {name: array_in(archive, members[f"{name}.npy"], like) for name, like in expected.items()}
    for name, array in _named_arrays(network):
        array[...] = found[name]
    _check_signs(network)
    resume = None
    if meta["resume"] is not None:
        resume = {name: found[f"resume/{name}"] for name in RESUME_ARRAYS}, meta["resume"]
    return Model(network, meta["training"], resume)


def _check_signs(network: Classifier) -> None:
    """Check the signs of constants, as declared by the layers."""
    for number, layer in enumerate(network.layers):
        where = f"layers/{number:02d}.{type(layer).__name__}"
        for name in layer.positive_state:
            if not (layer.state[name] > 0).all():
                raise ModelFileError(f"{where}.{name} must be positive")
        for name in layer.nonnegative_state:
            if not (layer.state[name] >= 0).all():
                raise ModelFileError(f"{where}.{name} must not be negative")


def _meta(archive, members) -> dict:
    if "meta.json" not in members or members["meta.json"].file_size > LARGEST_META:
        raise ModelFileError("it has no meta.json")
    meta = json.loads(archive.read("meta.json"), parse_constant=_refuse_constant)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ModelFileError("its meta.json belongs to another program")
    if type(meta.get("version")) is int and meta["version"] > FORMAT_VERSION:
        raise NewerFormat
    if meta.get("version") not in range(1, FORMAT_VERSION + 1):
        raise ModelFileError(f"its format is version {meta.get('version')!r}, this tigra reads up to {FORMAT_VERSION}")
    if not isinstance(meta["resume"], (dict, type(None))) or not _is_record(meta["training"]):
        raise ModelFileError("its training record is malformed")
    return meta


def _refuse_constant(name: str):
    raise ModelFileError(f"it holds the number {name}")


def _is_record(training) -> bool:
    """Whether the facts about a training run have the expected types; all are optional."""
    kinds = {
        "dataset": str,
        "protocol": str,
        "dataset_options": dict,
        "options": dict,
        "split_hash": str,
        "learned": str,
        "best_epoch": int,
        "history": list,
    }
    if not isinstance(training, dict) or not all(type(training[k]) is kinds[k] for k in kinds if k in training):
        return False
    accuracies = training.get("accuracy") or {}
    return (
        isinstance(accuracies, dict)
        and all(_is_printable(name) and type(value) is float for name, value in accuracies.items())
        and all(_is_printable(training.get(name, "")) for name in ("dataset", "protocol"))
    )


def _network(meta: dict, graph: Graph | None, file_size: int) -> Classifier:
    """Build the network from its options, if the file is large enough to contain it.

    Sizes are checked on the plan, before anything is built.
    """
    options = meta["options"]
    kind = meta.get("kind", "deepscat" if "PCA[" in options["architecture"] else "network")  # version 1 has none
    if kind not in MODEL_KINDS:
        raise ModelFileError(f"it holds a model of kind {short(kind)}, which is not registered")
    plan = MODEL_KINDS[kind](options, graph)
    if plan.n_pixels > LARGEST_IMAGE:
        raise ModelFileError("its image shape is impossible")
    if plan.n_bytes > file_size:
        raise ModelFileError("it is smaller than the network it describes")
    network = plan.network()
    if not _are_names(meta["class_names"], network.n_classes):
        raise ModelFileError("its class names do not fit")
    network.class_names = meta["class_names"]
    temperature = meta.get("temperature", 1.0)
    if type(temperature) is not float or not 1e-3 <= temperature <= 1e3:
        raise ModelFileError("its temperature is impossible")
    network.temperature = temperature
    return network


# --- models that come with tigra ------------------------------------------------------------


def _found(path):
    """The file of a model that comes with tigra, if `path` is its name and there is no file of that name."""
    if isinstance(path, str) and not os.path.isfile(path):
        return packaged_models().get(path, path)
    return path


PREFIX, ENDING = "model-", ".npz"


def packaged_models() -> dict[str, Path]:
    """Models that are installed with tigra.

    Returns
    -------
    dict of str to Path
        Model file by name.

    Examples
    --------
    >>> "mnist-012" in packaged_models()
    True
    """
    try:
        folder = resources.files("tigra_data")
    except ModuleNotFoundError:  # a source tree that was never installed
        return {}
    files = [Path(str(entry)) for entry in folder.iterdir()]
    models = {
        path.name[len(PREFIX) : -len(ENDING)]: path
        for path in files
        if path.name.startswith(PREFIX) and path.name.endswith(ENDING)
    }
    return dict(sorted(models.items()))

"""Model files: one zip file with everything to predict and to resume; nothing in it is executed.

    meta.json                      format, version, options of build_network or build_deepscat, class names, training
    layers/00.SpectralConv.alpha.npy ...   parameters and constants, one array a file
    resume/*.npy                   the state of an unfinished or finished training run

`numpy.load` opens it too. Members are stored uncompressed, so that a file cannot unpack to more
than its own size. A file from outside is not trusted: names, sizes, shapes, dtypes and check sums
are compared with what the architecture calls for before an array is made.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import zipfile
from dataclasses import dataclass, field

import numpy as np

from tigra.architecture import build_network, count_parameters
from tigra.atomic_files import check_writable, write_atomically
from tigra.classifier import Classifier
from tigra.deepscat import DeepScat, build_deepscat, count_fitted, is_deepscat
from tigra.errors import ModelFileError, TigraError
from tigra.network import Network
from tigra.version import __version__

__all__ = ["Model", "check_writable", "load", "load_model", "save", "write_atomically"]
FORMAT, FORMAT_VERSION = "tigra model", 1
RESUME_ARRAYS = "current", "best", "adam_mean", "adam_square"
LARGEST_META = 16 * 2**20  # bytes
LARGEST_IMAGE = 2**24  # pixels, with the margin


class NewerFormat(Exception):
    """A model file of a version that this tigra does not know yet."""


@dataclass
class Model:
    """A network, trained or fitted, with what is known about it.

    training : facts for people and scripts: data set, accuracies, best epoch
    resume : None, or (arrays, numbers) as `Training.snapshot` gives them
    """

    network: Network | DeepScat
    training: dict = field(default_factory=dict)
    resume: tuple[dict, dict] | None = None


def save(
    network: Network | DeepScat, path, training: dict | None = None, resume: tuple[dict, dict] | None = None
) -> None:
    """Write a network, or a fitted DeepScat, to a file that `load` reads; the file appears whole or not at all."""
    _check_complete(network)
    meta = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "tigra": __version__,
        "options": network.options,
        "class_names": network.class_names,
        "training": training or {},
        "resume": resume[1] if resume else None,
    }
    arrays = dict(_named_arrays(network))
    if resume:
        arrays |= {f"resume/{name}": resume[0][name] for name in RESUME_ARRAYS}
    write_atomically(path, _packed(meta, arrays))


def load(path) -> Network | DeepScat:
    """The network, or DeepScat, in a file that `save` wrote."""
    return load_model(path).network


def load_model(path) -> Model:
    """The network in a file, with its training facts and the state to resume."""
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise ModelFileError("it is not an ordinary file")
        with zipfile.ZipFile(path) as archive:
            return _unpacked(archive)
    except NewerFormat as error:
        raise ModelFileError(f"{path} was written by a newer tigra; update tigra to read it.") from error
    except (TigraError, zipfile.BadZipFile) as error:
        reason = str(error).rstrip(".") if isinstance(error, TigraError) else "truncated, or another format"
        raise ModelFileError(
            f"{path} is damaged or not a tigra model file ({reason}); train a new one with 'tigra train'."
        ) from error
    except OSError as error:
        raise ModelFileError(f"Cannot read the model file {path}: {error.strerror or error}.") from error
    except Exception as error:  # a hostile file can make any parser stumble; none of it was executed
        raise ModelFileError(
            f"{path} is damaged or not a tigra model file ({type(error).__name__}); train a new one with 'tigra train'."
        ) from error


def _builder(kind: type):
    """The function that makes a Network or a DeepScat from its options."""
    return build_deepscat if issubclass(kind, DeepScat) else build_network


def _check_complete(network: Classifier) -> None:
    """Refuse to write what `load` would refuse to read, or could not use."""
    builder = _builder(type(network))
    if set(network.options) != set(inspect.signature(builder).parameters):
        raise ModelFileError(f"Only networks made by {builder.__name__} can be saved: the file holds its arguments.")
    if isinstance(network, DeepScat) and not network.is_fitted:
        raise ModelFileError("This DeepScat has not been fitted, so it is not saved; call fit first.")
    if not _are_names(network.class_names, network.n_classes):
        raise ModelFileError(f"class_names must be {network.n_classes} printable texts, got {network.class_names!r}.")
    if not all(np.isfinite(array).all() for _, array in _named_arrays(network)):
        raise ModelFileError("The network has parameters that are not finite, so it is not saved; train it anew.")


def _are_names(names, n_classes: int) -> bool:
    return isinstance(names, list) and len(names) == n_classes and all(map(_is_printable, names))


def _is_printable(text) -> bool:
    """Whether it is a text without control characters, which a terminal would obey."""
    return isinstance(text, str) and text.isprintable()


def _named_arrays(network: Classifier):
    """(name, array) of every parameter and constant, in the order of the layers."""
    for number, layer in enumerate(network.layers):
        for name, array in (layer.params | layer.state).items():
            yield f"layers/{number:02d}.{type(layer).__name__}.{name}", array


def _packed(meta: dict, arrays: dict) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("meta.json"), json.dumps(meta, indent=1))
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), (1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return buffer.getvalue()


def _unpacked(archive: zipfile.ZipFile) -> Model:
    members = {info.filename: info for info in archive.infolist()}
    if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
        raise ModelFileError("its members are compressed")
    meta = _meta(archive, members)
    file_size = os.fstat(archive.fp.fileno()).st_size
    network = _network(meta, file_size)
    expected = dict(_named_arrays(network))
    if meta["resume"] is not None:
        if isinstance(network, DeepScat):
            raise ModelFileError("it cannot be resumed, as nothing of it is trained")
        expected |= {f"resume/{name}": network.learned for name in ("current", "best")}
        expected |= {f"resume/{name}": network.parameters for name in ("adam_mean", "adam_square")}
    if set(members) != {"meta.json", *(f"{name}.npy" for name in expected)}:
        raise ModelFileError("its arrays are not those of its architecture")
    found = {name: _array(archive, members[f"{name}.npy"], like) for name, like in expected.items()}
    for name, array in _named_arrays(network):
        array[...] = found[name]
        if name.endswith((".deviation", ".offset", ".temperature")) and not (array > 0).all():
            raise ModelFileError(f"{name} must be positive")
        if name.endswith((".running_variance", ".total")) and not (array >= 0).all():
            raise ModelFileError(f"{name} must not be negative")
    resume = None
    if meta["resume"] is not None:
        resume = {name: found[f"resume/{name}"] for name in RESUME_ARRAYS}, meta["resume"]
    return Model(network, meta["training"], resume)


def _meta(archive, members) -> dict:
    if "meta.json" not in members or members["meta.json"].file_size > LARGEST_META:
        raise ModelFileError("it has no meta.json")
    meta = json.loads(archive.read("meta.json"), parse_constant=_refuse_constant)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ModelFileError("its meta.json is another program's")
    if type(meta.get("version")) is int and meta["version"] > FORMAT_VERSION:
        raise NewerFormat
    if meta.get("version") != FORMAT_VERSION:
        raise ModelFileError(f"its format is version {meta.get('version')!r}, this tigra reads {FORMAT_VERSION}")
    if not isinstance(meta["resume"], (dict, type(None))) or not _is_record(meta["training"]):
        raise ModelFileError("its training record is malformed")
    return meta


def _refuse_constant(name: str):
    raise ModelFileError(f"it holds the number {name}")


def _is_record(training) -> bool:
    """Whether the facts about a training run, where present, have the types that commands rely on."""
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


def _network(meta: dict, file_size: int) -> Network | DeepScat:
    """The network that the options call for, if the file is large enough to hold it."""
    fitted = is_deepscat(meta["options"]["architecture"])
    builder = _builder(DeepScat if fitted else Network)
    names, arguments = meta["class_names"], inspect.signature(builder).parameters
    if not set(meta["options"]) <= set(arguments):
        raise ModelFileError(f"its options are not those of {builder.__name__}")
    defaults = {name: argument.default for name, argument in arguments.items()}
    options = defaults | meta["options"]  # a file from before an option was there has its default
    (height, width), margin = options["image_shape"], options.get("margin", 0)
    if not all(type(size) is int for size in (height, width, margin)) or min(height, width) < 1 or margin < 0:
        raise ModelFileError("its image shape is not possible")
    grid_shape = height + 2 * margin, width + 2 * margin
    if grid_shape[0] * grid_shape[1] > LARGEST_IMAGE:
        raise ModelFileError("its image shape is not possible")
    if type(options["n_classes"]) is not int:  # a text, times the number of features, would fill the memory
        raise ModelFileError("its number of classes is not possible")
    if fitted:
        n_bytes = 8 * count_fitted(options["architecture"], (height, width), options["n_classes"])
    else:
        n_parameters = count_parameters(options["architecture"], grid_shape, options["n_classes"], options["mixing"])
        n_bytes = n_parameters * np.dtype(options["dtype"]).itemsize
    if n_bytes > file_size:
        raise ModelFileError("it is smaller than the network it describes")
    network = builder(**options)
    if not _are_names(names, network.n_classes):
        raise ModelFileError("its class names do not fit")
    network.class_names = names
    return network


def _array(archive, info: zipfile.ZipInfo, like: np.ndarray) -> np.ndarray:
    """The member as an array with the shape and dtype of `like`, finite throughout."""
    if info.file_size > like.nbytes + 4096:
        raise ModelFileError(f"{info.filename} has the wrong size")
    content = archive.read(info)  # checks the CRC
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ModelFileError(f"{info.filename} is not an array")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    if (shape, fortran_order, dtype) != (like.shape, False, like.dtype):
        raise ModelFileError(f"{info.filename} has the wrong shape or type")
    array = np.frombuffer(content, dtype, offset=stream.tell()).reshape(shape)
    if not np.isfinite(array).all():
        raise ModelFileError(f"{info.filename} has values that are not finite")
    return array

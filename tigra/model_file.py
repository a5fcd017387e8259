"""Model files: one zip file with everything to predict and to resume; nothing in it is executed.

    meta.json                      format, version, options of build_network, class names, training
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
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tigra.architecture import build_network, count_parameters
from tigra.errors import ModelFileError, TigraError
from tigra.network import Network
from tigra.version import __version__

FORMAT, FORMAT_VERSION = "tigra model", 1
RESUME_ARRAYS = "current", "best", "adam_mean", "adam_square"
LARGEST_META = 16 * 2**20  # bytes
LARGEST_IMAGE = 2**24  # pixels


@dataclass
class Model:
    """A network with what is known about it.

    training : facts for people and scripts: data set, accuracies, best epoch
    resume : None, or (arrays, numbers) as `Training.snapshot` gives them
    """

    network: Network
    training: dict = field(default_factory=dict)
    resume: tuple[dict, dict] | None = None


def save(network: Network, path, training: dict | None = None, resume: tuple[dict, dict] | None = None) -> None:
    """Write a network to a file that `load` reads; the file appears whole or not at all."""
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


def load(path) -> Network:
    """The network in a file that `save` wrote."""
    return load_model(path).network


def load_model(path) -> Model:
    """The network in a file, with its training facts and the state to resume."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _unpacked(archive)
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


def check_writable(path) -> None:
    """Raise ModelFileError now if `save` could not write to path later."""
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"Cannot write the model to {path}: it is a folder; give a file name.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise ModelFileError(
            f"Cannot write the model to {path}: {error.strerror}; choose another file with --out."
        ) from error


def write_atomically(path, content: bytes) -> None:
    """Put content into path so that a crash leaves the old file or the new one, never half of it."""
    path = Path(path)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise ModelFileError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _named_arrays(network: Network):
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
        expected |= {f"resume/{name}": network.parameters for name in RESUME_ARRAYS}
    if set(members) != {"meta.json", *(f"{name}.npy" for name in expected)}:
        raise ModelFileError("its arrays are not those of its architecture")
    found = {name: _array(archive, members[f"{name}.npy"], like) for name, like in expected.items()}
    for name, array in _named_arrays(network):
        array[...] = found[name]
    resume = None
    if meta["resume"] is not None:
        resume = {name: found[f"resume/{name}"] for name in RESUME_ARRAYS}, meta["resume"]
    return Model(network, meta["training"], resume)


def _meta(archive, members) -> dict:
    if "meta.json" not in members or members["meta.json"].file_size > LARGEST_META:
        raise ModelFileError("it has no meta.json")
    meta = json.loads(archive.read("meta.json"))
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ModelFileError("its meta.json is another program's")
    if meta.get("version") != FORMAT_VERSION:
        raise ModelFileError(f"its format is version {meta.get('version')!r}, this tigra reads {FORMAT_VERSION}")
    if not isinstance(meta["training"], dict) or not isinstance(meta["resume"], (dict, type(None))):
        raise ModelFileError("its training record is malformed")
    return meta


def _network(meta: dict, file_size: int) -> Network:
    """The network that the options call for, if the file is large enough to hold it."""
    options, names = meta["options"], meta["class_names"]
    if set(options) != set(inspect.signature(build_network).parameters):
        raise ModelFileError("its options are not those of build_network")
    (height, width), margin = options["image_shape"], options["margin"]
    if not all(type(size) is int for size in (height, width, margin)) or min(height, width) < 1 or margin < 0:
        raise ModelFileError("its image shape is not possible")
    grid_shape = height + 2 * margin, width + 2 * margin
    if grid_shape[0] * grid_shape[1] > LARGEST_IMAGE:
        raise ModelFileError("its image shape is not possible")
    n_parameters = count_parameters(options["architecture"], grid_shape, options["n_classes"], options["mixing"])
    if n_parameters * np.dtype(options["dtype"]).itemsize > file_size:
        raise ModelFileError("it is smaller than the network it describes")
    network = build_network(**options)
    if not (isinstance(names, list) and len(names) == network.n_classes and all(type(n) is str for n in names)):
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

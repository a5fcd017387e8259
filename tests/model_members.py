"""Model files taken apart and put together by hand."""

import io
import zipfile

import numpy as np


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def write(path, content, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def npy(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, (1, 0), allow_pickle=True)
    return stream.getvalue()

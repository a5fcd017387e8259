"""Draw MNIST-012, the digits inside the package, from the MNIST files.

    python data/draw_mnist_012.py FOLDER

FOLDER holds the four gzipped idx files of MNIST; the SHA-256 sums of their content are checked. 500 training
and 100 validation digits come from MNIST's training set, 100 test digits from its test set, all
with labels 0, 1 or 2, at random with the seed below; they are stored upright, as 8-bit pixels.
"""

import gzip
import hashlib
import sys
from pathlib import Path

import numpy as np

SEED = 12
SIZES = {"train": 500, "valid": 100, "test": 100}
SHA256 = {  # of the files' unpacked content, so that it does not matter who compressed them
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


def read_idx(folder: Path, name: str) -> np.ndarray:
    """The array of unsigned bytes in folder/name.gz, once its SHA-256 is found to be MNIST's."""
    content = gzip.decompress((folder / f"{name}.gz").read_bytes())
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        sys.exit(f"{name}.gz is not MNIST's: SHA-256 {SHA256[name]} expected, {found} found.")
    n_axes = content[3]
    shape = np.frombuffer(content, ">i4", n_axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def main(folder: Path, out: Path) -> None:
    """Write out, a compressed npz with {train,valid,test}_{images,labels}."""
    rng = np.random.default_rng(SEED)
    pools = {}
    for part in ("train", "t10k"):
        images = read_idx(folder, f"{part}-images-idx3-ubyte")
        labels = read_idx(folder, f"{part}-labels-idx1-ubyte")
        pools[part] = images, labels, rng.permutation(np.flatnonzero(labels <= 2))
    n_train, n_valid = SIZES["train"], SIZES["valid"]
    chosen = {
        "train": ("train", slice(0, n_train)),
        "valid": ("train", slice(n_train, n_train + n_valid)),
        "test": ("t10k", slice(0, SIZES["test"])),
    }
    arrays = {}
    for split, (part, which) in chosen.items():
        images, labels, order = pools[part]
        arrays[f"{split}_images"] = images[order[which]]
        arrays[f"{split}_labels"] = labels[order[which]]
    np.savez_compressed(out, **arrays)
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(__file__).with_name("mnist-012.npz"))

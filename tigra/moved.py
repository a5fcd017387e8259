"""Old module names of version 0.1, which still work with a deprecation warning; to be removed in version 0.3."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tigra.option_fields import warn_deprecated

MOVED = {  # old name -> new modules
    "affine_pca": "baselines.deepscat.affine_pca",
    "architecture": "models.build models.tigranet",
    "archives": "datasets.archives",
    "atomic_files": "files.atomic",
    "check_cases": "gradcheck.cases",
    "classifier": "models.classifier",
    "contact_sheet": "figures.contact_sheet",
    "deepscat": "baselines.deepscat.deepscat",
    "download": "datasets.download",
    "equivariance": "theory.bounds",
    "exhibit": "figures.exhibit",
    "feature_cache": "baselines.deepscat.feature_cache",
    "figures.invariance": "figures.turn",
    "file_digests": "files.digests",
    "fitting": "baselines.deepscat.fitting experiments.recipes",
    "folders": "datasets.folders",
    "fused": "graph.operators",
    "grid_kernels": "kernels.grid",
    "harmonic_kernels": "baselines.harmonic.kernels",
    "image_store": "images.store",
    "inspection": "figures.inspection",
    "invariance": "experiments.invariance",
    "isometries": "theory.isometries",
    "jitter": "training.jitter",
    "layers.conv": "baselines.planes.conv",
    "layers.harmonic_conv": "baselines.harmonic.harmonic_conv",
    "layers.modulus": "baselines.harmonic.modulus",
    "layers.planes": "baselines.planes.planes",
    "layers.spatial_transformer": "baselines.planes.spatial_transformer",
    "loss": "models.loss",
    "methods": "experiments.methods",
    "morlet": "baselines.deepscat.morlet",
    "nearest": "baselines.nearest",
    "network": "models.network",
    "notation": "models.notation models.kinds",
    "optim": "training.adam options",
    "packaged": "model_file",
    "passes": "models.batch_statistics",
    "picture_files": "datasets.picture_files",
    "plane_kernels": "baselines.planes.kernels",
    "plane_kinds": "baselines.kinds",
    "polynomials": "graph.polynomials",
    "protocols": "datasets.protocols",
    "recipes": "experiments.recipes",
    "reproduction": "experiments.reproduction experiments.runs",
    "resolution": "theory.resolution",
    "run_records": "experiments.records",
    "runs": "experiments.runs experiments.resuming",
    "scattering": "baselines.deepscat.scattering",
    "settings": "training.epochs options",
    "smooth_images": "theory.smooth_images",
    "sources": "datasets.sources files.cache",
    "spectral": "theory.fourier",
    "splits": "datasets.splits seeding",
    "tables": "experiments.tables",
    "transforms": "images.transforms",
    "workers": "models.workers",
    "workspace": "kernels.workspace",
}


ROOMS = {  # packages that were modules: name -> new modules
    "datasets": "datasets.loading",
    "gradcheck": "gradcheck.checks gradcheck.cases",
    "graph": "graph.graph",
    "images": "images.pictures",
    "kernels": "kernels.steps kernels.moments kernels.pooling kernels.adam images.sampling kernels.decorator",
    "layers": "baselines",
    "training": "training.training training.fitting models.classifier datasets.splits options",
}


def _look_up(old: str, places: str) -> Callable[[str], Any]:
    """Return a module `__getattr__` that looks names up in the new modules."""
    new = [f"tigra.{place}" for place in places.split()]

    def look_up(name: str) -> Any:
        for place in [] if name.startswith("__") else new:
            found = importlib.import_module(place)
            if hasattr(found, name):
                _warn(f"tigra.{old}.{name}", f"{place}.{name}")
                return getattr(found, name)
        raise AttributeError(f"module 'tigra.{old}' has no attribute {name!r}, nor has {' or '.join(new)}")

    return look_up


def _warn(old: str, new: str) -> None:
    warn_deprecated(f"{old} is {new} now; the old name will be removed in version 0.3.")


def _old_module(name: str) -> ModuleType:
    """`tigra.transforms` without an import of its own."""
    if name in MOVED:
        return importlib.import_module(f"tigra.{name}")
    raise AttributeError(f"module 'tigra' has no attribute {name!r}")


class MovedModules(MetaPathFinder, Loader):
    """Import hook for old module names such as `tigra.transforms`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for old names, and None for all others."""
        package, _, name = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == "tigra" and name in MOVED else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Use the default module creation."""

    def exec_module(self, module: ModuleType) -> None:
        """Make the old module look names up in the new ones."""
        old = module.__name__.removeprefix("tigra.")
        module.__getattr__ = _look_up(old, MOVED[old])  # type: ignore[method-assign]


def install() -> None:
    """Install the import hook, and the lookup of old names in packages."""
    sys.meta_path.append(MovedModules())
    sys.modules["tigra"].__getattr__ = _old_module  # type: ignore[method-assign]
    for room, places in ROOMS.items():
        module = importlib.import_module(f"tigra.{room}")
        module.__getattr__ = _look_up(room, places)  # type: ignore[method-assign]

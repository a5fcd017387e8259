"""onnxruntime with the file that `tigra export` writes; the graph prepares the images, as tigra does."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

import numpy as np

from tigra.models.network import Network


class OnnxPeer:
    """Inference only. Raises ImportError where onnx or onnxruntime is missing."""

    name = "onnxruntime"

    def __init__(self, network: Network, threads: int):
        onnxruntime = importlib.import_module("onnxruntime")
        importlib.import_module("onnx")
        from tigra.onnx import export_onnx

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.onnx"
            export_onnx(network, path)
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        (self.input,) = (found.name for found in self.session.get_inputs())

    def probabilities(self, images: np.ndarray) -> np.ndarray:
        """(B, H, W) -> (B, n_classes)."""
        return self.session.run(["probabilities"], {self.input: images})[0]

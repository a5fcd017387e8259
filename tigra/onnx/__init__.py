"""Networks as ONNX files, for programs that do not have tigra; needs the packages onnx and onnxruntime.

writer.py        nodes and constants of an ONNX graph; layers write themselves with it (`Layer.to_onnx`)
graph_writer.py  Laplacians and gradients on graphs as ONNX nodes
export.py        a whole network with the preparation of its images
checking.py      comparison with onnxruntime
"""

from tigra.onnx.checking import Comparison, compare, drawn_images
from tigra.onnx.export import export_onnx, onnx_model

__all__ = ["Comparison", "compare", "drawn_images", "export_onnx", "onnx_model"]

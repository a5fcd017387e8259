"""The tests of this folder need onnx and onnxruntime."""

import pytest

pytest.importorskip("onnx", reason="install onnx: pip install -e '.[test]'")
pytest.importorskip("onnxruntime", reason="install onnxruntime: pip install -e '.[test]'")

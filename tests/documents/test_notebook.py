"""docs/first_gradient.ipynb runs from top to bottom, and its kept outputs are those of its code."""

import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "first_gradient.ipynb"


def needed(package):
    return pytest.importorskip(package, reason=f'the notebook needs {package}: pip install -e ".[test,figures]"')


def printed(notebook):
    """The text that each cell prints or ends with; pictures left out."""
    texts = []
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        streams = "".join(output.text for output in outputs if output.output_type == "stream")
        results = [output.data["text/plain"] for output in outputs if output.output_type == "execute_result"]
        texts.append((streams, results))
    return texts


@pytest.mark.slow
def test_the_notebook_runs_and_prints_what_is_kept_in_it(tmp_path):
    """A cell that fails raises CellExecutionError, with its traceback."""
    nbclient, nbformat, _, _ = (needed(name) for name in ("nbclient", "nbformat", "ipykernel", "matplotlib"))
    kept, fresh = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    client = nbclient.NotebookClient(
        fresh, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    assert printed(fresh) == printed(kept)
    pictures = [output for cell in fresh.cells for output in cell.get("outputs", []) if "image/png" in str(output)]
    assert len(pictures) == 3


def test_the_notebook_is_small_and_names_no_machine():
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 200_000
    assert not re.search(r"/(?:home|root|work|tmp|Users)/", text)

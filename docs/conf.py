"""The documentation site: `sphinx-build -W docs docs/_build` (install with `pip install -e ".[docs,figures]"`).

Everything is computed when the site is built. Its pages load nothing from elsewhere, so they can be read offline:
formulas become MathML, which browsers draw without a script, and the theme's fonts are those of the reader's system.
"""

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from tigra import __version__

project = "tigra"
copyright = "the tigra developers"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "results", "ideas", "tour"]
templates_path: list[str] = []
default_role = "py:obj"  # `name` in a docstring is a link where there is such a name, and code where there is none

# --- Markdown and notebooks
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # first_gradient.ipynb is kept with its outputs; tests/documents/test_notebook.py runs it
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

# --- docstrings
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
autodoc_mock_imports = [] if find_spec("sklearn") else ["sklearn", "joblib"]  # pages are the same without them
autoclass_content = "class"
napoleon_google_docstring = False
napoleon_use_ivar = True  # no second entry for an attribute that is a member, too
napoleon_use_param = False  # keeps a type such as "array (K_out, M+1)" in one piece
napoleon_use_rtype = False
python_maximum_signature_line_length = 140  # with the full names of types, which are shown short

# --- HTML
html_theme = "furo"
html_title = f"tigra {release}"
html_static_path = ["_static"]
html_css_files = ["tigra.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False


# --- formulas

OPERATORS = "arg|cos|det|exp|lim|log|max|min|sin"


def mathml(latex: str, display: str) -> str:
    """A formula as MathML, with the spacing of LaTeX where latex2mathml leaves it to the browser."""
    text = convert(latex, display=display)
    text = re.sub(r"<mo>(&#x0007C;|&#x02016;)</mo>", r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', text)
    text = re.sub(rf"<m[io]>({OPERATORS})</m[io]>", r'<mo lspace="0.167em" rspace="0.167em">\1</mo>', text)
    text = text.replace("<mo>sign</mo>", '<mo lspace="0.167em" rspace="0">sign</mo>')
    return re.sub(r"<mover>(?=(?:(?!<mover).)*?<mo stretchy=\"false\">&#x0007E;)", '<mover accent="true">', text)


def visit_inline(writer, node) -> None:
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(writer, node) -> None:
    writer.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


# --- docstrings, which are written to be read in the source

SECTIONS_OF_ITEMS = "Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also"
ITEM = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)")
LITERAL = [".. code-block:: text", ""]
COLUMNS = re.compile(r"\S+(?:, \S+)* {2,}\S")


def as_restructured_text(lines: list[str]) -> list[str]:
    """A docstring with its formulas as literal blocks, `name : text` as a list, and plain `_`, `*` and `|`."""
    result: list[str] = []
    section, state = "", "text"  # state: text, an item's text, a formula, or an example
    for place, line in enumerate(lines):
        after = lines[place + 1] if place + 1 < len(lines) else ""
        starts = not result or not result[-1].strip()
        if re.fullmatch(r"-{3,}", after):
            section = line
        if not line.strip():
            state = "text" if state == "example" else state
        elif line.startswith(">>>") or state == "example":
            state = "example"
        elif section in SECTIONS_OF_ITEMS or re.fullmatch(r"-{3,}", line):
            line = escaped(line) if line.startswith(" ") else line
        elif found := ITEM.fullmatch(line):
            if state != "item":
                result += [] if starts else [""]
            line, state = f"``{found[1]}``\n    {escaped(found[2])}", "item"
        elif line.startswith(" "):
            if state == "text" and starts and not is_list_item(result):
                result += LITERAL
                state = "formula"
            line = line if state == "formula" else escaped(line)
        elif starts and COLUMNS.match(line) and (not after or COLUMNS.match(after)):
            result += [*LITERAL, f"    {line}"]
            state = "columns"
            continue
        elif state == "columns":
            line = f"    {line}"
        else:
            result += [""] if state == "item" and not starts else []
            line, state = escaped(line), "text"
        state = "text" if state == "columns" and not line.strip() else state
        result += line.split("\n")
    return result


def is_list_item(lines: list[str]) -> bool:
    """Whether the last line with text belongs to a list."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return bool(re.match(r"\s*(?:[-*] |\d+\. |:)", last)) or last.endswith("::")


def escaped(text: str) -> str:
    """Text in which `_` at the end of a word, `*` and `|` mean themselves, except in code."""
    parts = re.split(r"(`+[^`]*`+)", text)
    return "".join(part if i % 2 else re.sub(r"\*|\||(?<=\w)_(?!\w)", r"\\\g<0>", part) for i, part in enumerate(parts))


def process_docstring(app, what, name, obj, options, lines) -> None:
    lines[:] = as_restructured_text(lines)
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # a comment, or napoleon takes what stands before a colon for the type


def skip_member(app, what, name, obj, skip, options) -> bool | None:
    """Leave out fields of named tuples, which the class describes."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


# --- links to files that are no pages


class LinksToFiles(SphinxTransform):
    """Links to files that are no pages: README.md and the like are offered as files, tour/index.html stays a page."""

    default_priority = 200

    def apply(self) -> None:
        for node in list(self.document.findall(addnodes.download_reference)):
            if node["reftarget"].endswith(".html"):  # its folder is copied as it is
                node.replace_self(nodes.reference("", "", *node.children, refuri=node["reftarget"], internal=True))
        for node in list(self.document.findall(addnodes.pending_xref)):
            page = node["reftarget"] if node.get("refdomain") == "doc" else ""
            if page.startswith("/"):  # MyST's name for a Markdown file that is not in docs/
                target = f"/{os.path.relpath(page, self.app.srcdir)}.md"
                node.replace_self(addnodes.download_reference("", "", *node.children, reftarget=target))


def copy_tour(app, error) -> None:
    if error is None and app.builder.format == "html":
        shutil.copytree(Path(app.srcdir, "tour"), Path(app.outdir, "tour"), dirs_exist_ok=True)


def setup(app) -> dict:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("autodoc-process-docstring", process_docstring, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", skip_member)
    app.add_transform(LinksToFiles)
    app.connect("build-finished", copy_tour)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

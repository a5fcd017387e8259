"""The documentation site builds without a warning, its links lead somewhere, and it needs no other server."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import tigra

for package in ("sphinx", "myst_nb", "furo", "latex2mathml"):
    pytest.importorskip(package, reason=f'the site needs {package}: pip install -e ".[docs]"')

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[2] / "docs"
CODE = re.compile(r"<(pre|code|script|style)\b.*?</\1>", re.DOTALL)


class Page(HTMLParser):
    """What a page loads, what it links to, the places in it that can be linked to, and its formulas."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.loads, self.links, self.places, self.n_formulas = [], [], {"", "top"}, 0
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.places |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        self.n_formulas += tag == "math"
        if tag == "a":
            self.links.append(attributes.get("href") or "")
        else:
            self.loads += [attributes[key] for key in ("src", "href", "srcset", "data") if attributes.get(key)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-b", "html"]
    words += ["-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_document_is_a_page(site):
    for path in (*DOCS.glob("*.md"), *DOCS.glob("*.ipynb"), *(DOCS / "api").glob("*.md")):
        assert (site / path.relative_to(DOCS)).with_suffix(".html").is_file(), path


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for path, page in pages.items():
        for address in page.loads:
            parts = urlsplit(address)
            assert parts.scheme in ("", "data") and not parts.netloc, f"{path.name} loads {address}"
    for path in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", path.read_text(encoding="utf-8")), path


def test_every_link_leads_somewhere(site, pages):
    n_checked = 0
    for path, page in pages.items():
        for address in (*page.links, *page.loads):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file() and target.is_relative_to(site.resolve()), f"{path.name}: {address}"
            if target.suffix == ".html":
                page_there = pages[site / target.relative_to(site.resolve())]
                assert unquote(parts.fragment) in page_there.places, f"{path.name}: {address}"
            n_checked += 1
    assert n_checked > 1000


def test_formulas_are_rendered(site, pages):
    assert pages[site / "derivations.html"].n_formulas > 300
    for path, page in pages.items():
        prose = CODE.sub("", page.text)
        assert "$$" not in prose and r"\frac" not in prose and "merror" not in prose, path.name


def test_every_public_name_is_on_an_api_page(site, pages):
    places = set().union(*(page.places for path, page in pages.items() if path.parent.name == "api"))
    assert {f"tigra.{name}" for name in tigra.__all__} <= places

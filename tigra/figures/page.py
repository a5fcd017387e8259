"""index.html: all figures of a folder on one page, with their captions."""

from __future__ import annotations

from html import escape

HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }}
figure {{ margin: 2.5em 0 }}
img {{ max-width: 100%; height: auto }}
figcaption {{ margin-top: .5em }}
</style>
<h1>{title}</h1>
<p>{facts}</p>
"""


def page(title: str, facts: str, entries: list, skipped: list) -> str:
    """Return the page as text; `entries` and `skipped` are those of `tigra.figures.write`.

    >>> print(page("a < b", "", [], []).splitlines()[-2])
    <h1>a &lt; b</h1>
    """
    parts = [HEAD.format(title=escape(title), facts=escape(facts))]
    for entry in entries:
        picture = next((name for name in entry["files"] if not name.endswith(".svg")), entry["files"][0])
        others = "".join(f' <a href="{escape(name)}">{escape(name)}</a>' for name in entry["files"])
        parts.append(
            f'<figure id="{entry["figure"]}">\n<img src="{escape(picture)}" alt="{escape(entry["title"])}">\n'
            f"<figcaption><b>{escape(entry['title'])}</b> ({escape(entry['paper'])}). {escape(entry['caption'])}"
            f" Files:{others}</figcaption>\n</figure>\n"
        )
    parts += [f"<p>Left out: {escape(left['figure'])}, because {escape(left['reason'])}.</p>\n" for left in skipped]
    return "".join(parts)

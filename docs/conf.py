"""The site, made by Sphinx: the pages of docs/*.md, and docs/reference from the docstrings (`make docs`)."""

from __future__ import annotations

import html
import importlib.metadata
from typing import Any

from docutils import nodes

from tonari.core.version import __version__

project = "tonari"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_click", "sphinx_copybutton"]

smartquotes = False  # "euclidean" and --recall are typed as they stand
default_role = "py:obj"  # `name` in a docstring is a link where the site has the name
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_block"]  # {.cards} before a list

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give the types, with shapes
numpydoc_show_class_members = False  # autodoc lists them

copybutton_exclude = ".linenos, .gp, .go"  # of a transcript the input alone is copied

html_theme = "furo"
html_title = "tonari"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
# The project's address is the entry Source of [project.urls] in pyproject.toml, and nowhere else.
_urls = dict(url.split(", ", 1) for url in importlib.metadata.metadata("tonari").get_all("Project-URL") or [])
html_theme_options = {"source_repository": _urls["Source"], "source_directory": "docs/"} if "Source" in _urls else {}


def setup(app: Any) -> None:
    """Describe every page to search engines, and leave out fields of named tuples, which their docstrings describe."""

    def is_field(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
        return True if type(member).__name__ == "_tuplegetter" else None

    def describe(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
        first = next(iter(doctree.findall(nodes.paragraph)), None) if doctree else None
        if first is None:
            return
        words = html.escape(" ".join(first.astext().split())[:300])
        title = html.escape(project if page == "index" else f"{doctree.next_node(nodes.title).astext()} · {project}")
        context["metatags"] = context.get("metatags", "") + (
            f'<meta name="description" content="{words}"><meta property="og:description" content="{words}">'
            f'<meta property="og:title" content="{title}"><meta property="og:type" content="article">'
        )

    app.connect("autodoc-skip-member", is_field)
    app.connect("html-page-context", describe)

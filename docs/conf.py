"""The site, made by Sphinx: the pages of docs/*.md, and docs/reference from the docstrings (`make docs`)."""

from __future__ import annotations

from typing import Any

from tonari.core.version import __version__

project = "tonari"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_click"]

smartquotes = False  # "euclidean" and --recall are typed as they stand
default_role = "py:obj"  # `name` in a docstring is a link where the site has the name
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give the types, with shapes
numpydoc_show_class_members = False  # autodoc lists them

html_theme = "furo"
html_title = "tonari"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False


def setup(app: Any) -> None:
    """Leave out fields of named tuples, which the Attributes of their docstrings describe."""

    def is_field(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
        return True if type(member).__name__ == "_tuplegetter" else None

    app.connect("autodoc-skip-member", is_field)

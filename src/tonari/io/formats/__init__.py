"""The file formats of matrices, each a module with `read`, `write` and `describe`.

``_formats.py`` maps suffixes to these modules.
"""

"""The formats of matrices, one module for each, with `read`, `write` and `describe`.

``_formats.py`` maps suffixes to these modules.
"""

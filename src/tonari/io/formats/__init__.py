"""The formats of matrices, a module each, with `read`, `write` and `describe`; ``_formats.py`` knows their suffixes."""

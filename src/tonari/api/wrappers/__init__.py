"""Decorators of public functions, for arguments that several of them share.

copies.py           `memory` counts copies of rows
changed.py          metrics, weights and matrices for which rows are transformed before they are compared
filtered.py         `where`, `exclude`, `exclude_within`, groups and `ties`
differentiable.py   gradients of distances
"""

"""Arguments that several public functions share and that transform their rows, points or results.

changed.py          metrics, weights and matrices for which rows are transformed before they are compared
filtered.py         `where`, `exclude`, `exclude_within`, groups and `ties`
differentiable.py   gradients of distances
"""

"""Arguments that several public functions have.

changed.py          metrics, weights and matrices that require transformed rows
filtered.py         `where`, `exclude`, groups and `ties`
differentiable.py   gradients of distances
"""

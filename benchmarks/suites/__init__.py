"""Suites: cases as data, and what each needs of its own to run them."""

NAMES = (
    "bits",
    "consumers",
    "contraction",
    "exact_cpu",
    "exact_cuda",
    "filters",
    "kdtree",
    "nn_descent",
    "promises",
    "radius",
    "radius_cuda",
    "select",
    "shards",
    "small",
    "spanning",
)

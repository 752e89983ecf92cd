"""Suites: cases as data, and the code that each suite needs to run them."""

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
    "radius_rules",
    "select",
    "shards",
    "small",
    "spanning",
    "sparse",
)

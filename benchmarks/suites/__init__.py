"""Suites of benchmark cases, written as data, and the code that runs the cases of each suite."""

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

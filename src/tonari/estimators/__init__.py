"""Estimators with scikit-learn's interface, whose neighbours tonari finds. Needs scikit-learn 1.6 or later.

nearest_neighbors.py        NearestNeighbors
k_neighbors_transformer.py  KNeighborsTransformer
k_neighbors_classifier.py   KNeighborsClassifier
k_neighbors_regressor.py    KNeighborsRegressor
searching.py                what the four have in common: fit, kneighbors, kneighbors_graph
settings.py                 scikit-learn's parameters in tonari's words, or why they have none
votes.py                    weights of neighbours, and the sums of a classifier's and a regressor's predictions

Differences from scikit-learn's classes of the same names, in all four:

- A distance is the float64 value of the definition, rounded once: float32 for float32 rows. That of a row to itself is
  exactly 0.
- Neighbours at the same distance are in ascending order of their row numbers, for any number of threads.
- A row is left out of its own list by its number, and the transformer puts it into column 0 by its number.
- Sparse matrices, ``metric="precomputed"``, callables and ``radius_neighbors`` are refused or absent; the messages say
  which class to use instead.
"""

try:
    import sklearn as _sklearn
except ImportError as error:
    raise ImportError("tonari.estimators needs scikit-learn 1.6 or later: pip install 'tonari[sklearn]'") from error

from tonari.estimators.k_neighbors_classifier import KNeighborsClassifier
from tonari.estimators.k_neighbors_regressor import KNeighborsRegressor
from tonari.estimators.k_neighbors_transformer import KNeighborsTransformer
from tonari.estimators.nearest_neighbors import NearestNeighbors

del _sklearn

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "KNeighborsTransformer", "NearestNeighbors"]

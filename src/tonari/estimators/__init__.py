"""Estimators with scikit-learn's interface, whose neighbours tonari finds. Needs scikit-learn 1.6 or later.

nearest_neighbors.py        NearestNeighbors
k_neighbors_transformer.py  KNeighborsTransformer
k_neighbors_classifier.py   KNeighborsClassifier
k_neighbors_regressor.py    KNeighborsRegressor
searching.py                their common base: fit, kneighbors, kneighbors_graph
settings.py                 conversion of scikit-learn's parameters
votes.py                    weights of neighbours, and the sums of a classifier's and a regressor's predictions

``docs/reference/estimators.rst`` lists the differences from scikit-learn's classes of the same names.
"""

try:
    import sklearn as _sklearn
except ImportError as error:
    raise ImportError("tonari.estimators needs scikit-learn 1.6 or later: pip install 'tonari[sklearn]'") from error

from tonari.core.hints import missing_from
from tonari.estimators.k_neighbors_classifier import KNeighborsClassifier
from tonari.estimators.k_neighbors_regressor import KNeighborsRegressor
from tonari.estimators.k_neighbors_transformer import KNeighborsTransformer
from tonari.estimators.nearest_neighbors import NearestNeighbors

del _sklearn

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "KNeighborsTransformer", "NearestNeighbors"]

__getattr__ = missing_from(__name__)

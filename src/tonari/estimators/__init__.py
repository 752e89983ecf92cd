"""Estimators with scikit-learn's interface that use tonari's exact neighbours; they require scikit-learn 1.6 or later.

nearest_neighbors.py      NearestNeighbors
transformers.py           KNeighborsTransformer, RadiusNeighborsTransformer
classifiers.py            KNeighborsClassifier, RadiusNeighborsClassifier
regressors.py             KNeighborsRegressor, RadiusNeighborsRegressor
local_outlier_factor.py   LocalOutlierFactor
dbscan.py                 DBSCAN
knn_imputer.py            KNNImputer
settings.py               conversion of scikit-learn's parameters to tonari's
bases/                    base classes of the estimators
predictions/              computation of predictions and clusters from neighbour lists

``docs/reference/estimators.rst`` lists the differences from scikit-learn's classes of the same names.
"""

try:
    import sklearn as _sklearn
except ImportError as error:
    raise ImportError("tonari.estimators needs scikit-learn 1.6 or later: pip install 'tonari[sklearn]'") from error

from tonari.core.hints import missing_from
from tonari.estimators.classifiers import KNeighborsClassifier, RadiusNeighborsClassifier
from tonari.estimators.dbscan import DBSCAN
from tonari.estimators.knn_imputer import KNNImputer
from tonari.estimators.local_outlier_factor import LocalOutlierFactor
from tonari.estimators.nearest_neighbors import NearestNeighbors
from tonari.estimators.regressors import KNeighborsRegressor, RadiusNeighborsRegressor
from tonari.estimators.transformers import KNeighborsTransformer, RadiusNeighborsTransformer

del _sklearn

__all__ = [
    "DBSCAN",
    "KNNImputer",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "LocalOutlierFactor",
    "NearestNeighbors",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
]

__getattr__ = missing_from(__name__)

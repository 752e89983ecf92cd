"""Public functions with distances that the caller defines: by a function of rows, or by a matrix of all distances.

call.py         the decorator that hands a call over, and checks of the arguments that all public functions share
answers.py      computes the results, with one function for each public function

:mod:`tonari.user_metrics` computes the distances and selects neighbours.
"""

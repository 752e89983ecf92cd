"""Public functions with distances that the caller defines: by a function of rows, or by a matrix of all distances.

replacing.py    the decorator of public functions; for such a metric it calls a function in answers.py instead
call.py         checks the arguments that all public functions share
answers.py      computes the results, with one function for each public function

:mod:`tonari.user_metrics` computes the distances and selects neighbours.
"""

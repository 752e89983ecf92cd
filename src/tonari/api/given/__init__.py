"""Public functions with distances that the caller defines: by a function of rows, or by a matrix of all distances.

replacing.py    the decorator of public functions, which calls the function of answers.py for such a metric
call.py         the arguments that all public functions share, checked
answers.py      the answers, one function for each public function

:mod:`tonari.given` computes the distances.
"""

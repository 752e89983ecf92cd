"""Public functions on sparse rows: compressed rows of SciPy, searched on the CPU (`tonari.sparse`).

answers.py   the answers, one function for each public function
mixed.py     one layout for sparse queries of dense points, and for dense queries of sparse points
among.py     searches among sparse points, which all answers share
"""

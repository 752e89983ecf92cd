"""Public functions on sparse rows: compressed rows of SciPy, searched on the CPU (`tonari.sparse`).

answers.py   the answers, one function for each public function
among.py     searches among sparse points, which all answers share
"""

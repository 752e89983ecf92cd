"""Public functions on sparse rows: matrices of SciPy in compressed rows, searched on the CPU by `tonari.sparse`.

answers.py   the results, with one function for each public function
mixed.py     one layout for sparse queries of dense points, and for dense queries of sparse points
among.py     searches among sparse points, which all functions in answers.py use
"""

"""Public functions on sparse rows: matrices of SciPy in compressed rows, searched on the CPU by `tonari.sparse`.

answers.py   the results, with one function for each public function; one layout for rows in two
among.py     searches among sparse points, which all functions in answers.py use
"""

"""Benchmarks of tonari, one command for all of them: ``python -m benchmarks``.

============  ========================================================================================================
``harness``   shared code: records of cases, runs, proofs, rows of results, peers, data sets, peak rates of machines
``suites``    cases as data: exact search on CPU and CUDA, k-d tree, NN-Descent, k-selection
``papers``    the experiments of five papers, repeated on our machines
``results``   one CSV file for each suite, with one schema (``harness/rows.py``)
============  ========================================================================================================
"""

"""Benchmarks of tonari, one command for all of them: ``python -m benchmarks``.

============  ========================================================================================================
``harness``   the common part: the record of a case, a run, proofs, rows of results, peers, data sets, ceilings
``suites``    cases as data: exact search on CPU and CUDA, k-d tree, NN-Descent, k-selection
``papers``    the experiments of papers on our machines
``results``   one CSV file for each suite, with one schema (``harness/rows.py``)
============  ========================================================================================================
"""

"""Expected running times in seconds: one cost model, fitted to measurements.

formulas.py   the cost of brute force, a k-d tree and NN-Descent as a function of the shapes of queries and points
rates.py      the measured constants of these formulas, by instruction set or GPU, and how they were measured
model.py      the expected time of a plan, for `auto`, `tonari plan` and progress bars
"""

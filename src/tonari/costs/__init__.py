"""Expected running times in seconds: one cost model, fitted to measurements.

formulas.py   the cost of brute force, of a k-d tree and of NN-Descent as functions of the problem's sizes
rates.py      the measured constants, by instruction set or GPU, with the commands that measured them
model.py      the expected time of a plan, as used by auto, `tonari plan` and progress bars
"""

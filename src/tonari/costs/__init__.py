"""What a search takes, in seconds: one model, fitted to measurements.

formulas.py   what brute force, a tree and NN-Descent cost, as functions of sizes
rates.py      the constants, by instruction set or card, with what measured them
model.py      a plan's expectation, for auto, `tonari plan` and progress alike
"""

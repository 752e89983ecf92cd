"""Public functions for use before a search: its plan, its expected cost, its kernels.

plan.py      plan: all choices of a search by one method; warm: compiles its kernels on CUDA in advance
explain.py   explain: the expected time and memory of every method, or why it cannot solve the problem
"""

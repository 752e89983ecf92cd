"""What every room may use and which uses none of them.

problem.py     what is asked: one record, made once at the border
plan.py        what the plans of all methods have in common
neighbors.py   what a search returns
errors.py      exceptions that callers tell apart
workers.py     threads: how many, and how a list of tasks runs on them
leaving.py     the interpreter's exit while threads are at work
floats.py      the floating-point environment of the verbs
isa.py         the instruction set of the CPU's kernels
progress.py    progress bars and callbacks
slices.py      rows cut into runs
units.py       units of memory
"""

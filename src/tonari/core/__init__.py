"""The lowest layer: every other subpackage may import it, and it imports none of them.

problem.py     the request, checked once at the API and passed down as one record
plan.py        the fields that the plans of all methods share
neighbors.py   what a search returns
errors.py      exceptions that callers can tell apart
workers.py     threads: how many to use, and how a list of tasks runs on them
leaving.py     interpreter exit while threads are still running
floats.py      the floating-point environment of the public functions
caches.py      caches of the process, and a function that empties all of them
isa.py         the instruction set of the CPU kernels
progress.py    progress bars and callbacks
slices.py      rows split into slices of a given size
units.py       units of memory
"""

"""The lowest layer: every other subpackage may import it, and it imports none of them.

problem.py     the request, checked once in the API and passed down as one record
plan.py        the fields that the plans of all methods share
neighbors.py   the result of a search
errors.py      exceptions with different meanings for callers
workers.py     threads: their number, and running a list of tasks on them
leaving.py     interpreter exit while threads are still running
floats.py      the floating-point environment of the public functions
caches.py      caches of the process, and a function that empties all of them
isa.py         the instruction set of the CPU kernels
progress.py    progress bars and callbacks
slices.py      rows split into slices of a given size
units.py       units of memory
"""

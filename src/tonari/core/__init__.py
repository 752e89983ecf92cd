"""The lowest layer of the package: every other subpackage may import it, and it imports none of them.

method.py      the interface of all methods; on_cpu.py: the base class of methods on the CPU
problem.py     the search or graph that a method solves; plan.py: the fields that all plans have
trail.py       the record of a call: its plan, later choices and attempts
errors.py      exceptions with different meanings for callers; hints.py: hints for names of other libraries
units.py       units of memory, texts for durations; tuning.py: tuned numbers for threads and waiting times
rows/          rows in slices, drawn at random, listed or allowed for each query
results/       the results of public functions: neighbours, neighbours within a radius, pairs
process/       the calling process: threads, progress, caches, exit, floats, instruction set, free memory
"""

"""The lowest layer: every other subpackage may import it, and it imports none of them.

method.py      the interface of a method; on_cpu.py: a method on the CPU
problem.py     the search that a method solves; plan.py: fields of all plans
trail.py       a record of the attempts of a call and of its choices after the plan
listed.py      queries with lists of points of different lengths
draws.py       random numbers, one stream for each purpose
errors.py      exceptions with different meanings for callers; hints.py: the names that other libraries use
slices.py      rows split into slices of a given size
units.py       units of memory, durations; tuning.py: tuned numbers for threads and waiting times
results/       the results of public functions: neighbours, neighbours within a radius, pairs
process/       the process that calls: threads, progress, caches, exit, floats, instruction set, free memory
"""

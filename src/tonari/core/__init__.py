"""The lowest layer: every other subpackage may import it, and it imports none of them.

method.py      the interface of a method; problem.py is what it is asked, plan.py what all plans share
trail.py       a record of the attempts of a call and of its choices after the plan
listed.py      queries with lists of points of different lengths
draws.py       random numbers, one stream for each purpose
errors.py      exceptions with different meanings for callers; hints.py: the names that other libraries use
slices.py      rows split into slices of a given size
units.py       units of memory; tuning.py: judgments that all rooms share
results/       what verbs return: neighbours, neighbours within a radius, pairs
process/       the process that calls: threads, progress, caches, exit, floats, instruction set, free memory
"""

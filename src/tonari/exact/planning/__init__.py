"""The making of a plan on the CPU.

planner.py    plan_on_cpu: precisions, threads, memory, seconds, and what the other modules decide
columns.py    how many columns the screen and a look compare
blocks.py     queries of a block, points of a slice, rows of a self-join at once, the sample
"""

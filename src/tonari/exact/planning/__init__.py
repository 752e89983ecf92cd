"""Plan exact search on the CPU.

planner.py    plan_on_cpu: precisions, threads, memory, seconds, and the choices of the other modules
columns.py    the number of columns that the screen and a look compare
blocks.py     queries of a block, points of a slice, rows of a self-join at once, the sample
"""

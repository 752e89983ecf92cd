"""Plan exact search on the CPU.

planner.py    plan_on_cpu: precisions, threads, memory, seconds, and the choices of the other modules
blocks.py     queries of a block, points of a slice, columns of the screen, rows of a self-join at once, the sample
"""

"""Make the plan of a build.

planner.py       plan_build: choose the route
exact.py         slabs of an exact build: a pair of slabs is compared once, or once in each direction
approximate.py   shards of "clusters" and of "ggm"
sizes.py         the arguments that plans depend on, the memory of a worker, and the largest number of rows that fits
devices.py       the number of devices that share a build
"""

"""Make the plan of a build.

planner.py       plan_build: choose the route, its slabs or shards, and the number of devices
sizes.py         the arguments that plans depend on, the memory of a worker, and the largest number of rows that fits
"""

"""The making of the plan of a build.

planner.py       plan_build: which route
exact.py         slabs of an exact build, compared once or from each side
approximate.py   shards of "clusters" and of "ggm"
sizes.py         the inputs of plans, the memory of a worker, and the most rows that fit
"""

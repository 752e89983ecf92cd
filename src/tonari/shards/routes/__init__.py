"""The routes of a build: how slabs or shards of rows are compared.

registry.py            the routes by name; run_task runs a task from beginning to end
exact_route.py         every slab of rows is compared with every other
pair_rounds.py         every two slabs are compared once, and each row keeps the nearest points found so far:
exact_pairs_route.py       exactly, on the CPU: each distance is used for the rows of both slabs
merge_route.py             by merging the two slabs' graphs (GGM, wang2021)
cluster_route.py       overlapping shards of near rows, whose lists are merged:
cluster_centres.py         the tasks that compute centres (centres.py) and shards (dealing.py)
"""

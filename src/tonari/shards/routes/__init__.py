"""The routes of a build: how slabs or shards of rows are compared.

registry.py            the routes by name; run_task runs a task from beginning to end
exact_route.py         every slab of rows is compared with every other; on the CPU each pair of slabs once
pair_rounds.py         every two slabs are compared once, and each row keeps its nearest so far:
merge_route.py             by merging the graphs of the two (GGM, wang2021)
cluster_route.py       shards of near rows that overlap, and the joined lists of their rows:
cluster_centres.py         the centres of shards, and the tasks that compute them; dealing.py: the shards
"""

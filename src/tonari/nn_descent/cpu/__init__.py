"""NN-Descent on the CPU.

backend.py   the steps
init.py, clusters.py, cluster_blocks.py, scores.py   the initial lists: the best members of near clusters, by scores
rounds.py    a round
"""

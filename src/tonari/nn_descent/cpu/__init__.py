"""NN-Descent on the CPU.

backend.py   the steps
init.py, clusters.py, cluster_blocks.py, scores.py   initial lists: for each point, the best members of near clusters
rounds.py    a round
"""

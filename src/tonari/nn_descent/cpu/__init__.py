"""NN-Descent on the CPU.

backend.py   the steps
init.py, clusters.py, cluster_blocks.py, scores.py   the first lists: members of near clusters, by scores alone
rounds.py    a round
"""

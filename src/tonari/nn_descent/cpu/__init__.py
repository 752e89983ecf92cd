"""NN-Descent on the CPU.

backend.py   the steps
init.py, clusters.py, cluster_blocks.py, scores.py   initial lists: for each point, the best members of near clusters
short_rows.py   contracted rows for the initial lists of wide rows
rounds.py    a round
"""

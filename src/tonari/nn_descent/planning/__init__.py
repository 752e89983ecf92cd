"""Plan an NN-Descent graph.

planner.py               makes the plan from the problem and the machine
work.py                  the number of comparisons that a plan implies, with which a run reports its progress
intrinsic_dimension.py   estimates how hard a data set is, with which auto chooses between NN-Descent and exact search
"""

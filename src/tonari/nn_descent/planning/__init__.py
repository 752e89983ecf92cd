"""Plan an NN-Descent graph.

planner.py               makes the plan from the problem and the machine
intrinsic_dimension.py   estimates how hard a data set is, with which auto chooses between NN-Descent and exact search
"""

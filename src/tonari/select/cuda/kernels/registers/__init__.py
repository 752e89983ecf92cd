"""Rows in registers: functions that the kernels of the methods call; none is launched alone.

keys.py      values as integers with the same order
tiles.py     the layout of a row
network.py   bitonic networks that sort and merge pairs
halving.py   the k-th smallest pair, by bisection
"""

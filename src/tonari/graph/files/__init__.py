"""Graphs in files.

npz.py         save and load a graph as an .npz file
directory.py   a graph, or the neighbours of queries, as a directory of mapped arrays
"""

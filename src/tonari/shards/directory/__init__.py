"""The directory of a build.

workspace.py   parts that tasks write for later tasks, and the rows of the graph
done.py        records of finished tasks
disk.py        the lock; file names that other programs use, links, and a full disk
"""

"""The directory of a build.

workspace.py   parts that tasks write for later tasks, the rows of the graph, and checksums
done.py        records of finished tasks
disk.py        the lock; file names that other programs use, links, and a full disk
"""

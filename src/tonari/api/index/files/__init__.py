"""The files of an Index.

header.py   the header of all files
dense.py    the file of an Index of dense rows; it opens the other files, too
coded.py    the file of an Index with codes
sparse.py   the file of an Index of sparse rows
"""

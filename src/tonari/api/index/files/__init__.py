"""The file formats of a saved Index.

header.py   the header, which all formats share
dense.py    the format for dense rows; its functions also open files of the other two formats
coded.py    the format for codes, without the rows
sparse.py   the format for sparse rows
"""

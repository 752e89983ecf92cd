"""Tables of points, whose columns may have names.

text.py         .csv and .tsv files
arrow.py        .parquet and .arrow files
columns.py      the choice of the columns that are coordinates or names of rows
sequential.py   a matrix whose rows are read once and in order
"""

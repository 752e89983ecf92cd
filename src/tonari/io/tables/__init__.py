"""Tables whose columns may have names.

text.py         .csv .tsv
arrow.py        .parquet .arrow
columns.py      which columns are coordinates or names of rows
sequential.py   rows that are read once and in order
"""

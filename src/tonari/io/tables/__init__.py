"""Tables whose columns may have names.

text.py         .csv .tsv
arrow.py        .parquet .arrow
columns.py      the choice of the columns that are coordinates or names of rows
sequential.py   rows that are read once and in order
"""

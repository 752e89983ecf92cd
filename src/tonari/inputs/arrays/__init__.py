"""Arrays of every kind, checked once and converted to rows.

kinds.py         which library an array belongs to, and on which device it is
bfloat16.py      the dtype that NumPy lacks
rows.py          points and queries in host memory
device_rows.py   points and queries on CUDA, rows by their numbers, the conversion of results
bits.py          rows of bits
values.py        NaN, infinity and other values that no row may have, on the CPU and on CUDA
gradients.py     rows that require gradients, where results carry none
selected.py      matrices for k-selection
unchanged.py     arrays that must not change while points are prepared
"""

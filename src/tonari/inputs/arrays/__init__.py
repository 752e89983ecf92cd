"""Arrays of every kind, checked once and converted to rows.

kinds.py         the library and the device of an array
bfloat16.py      the dtype that NumPy lacks
rows.py          points and queries in host memory
device_rows.py   points and queries on CUDA, rows by their numbers, the conversion of results
bits.py          rows of bits
values.py        refused values, such as NaN and infinity, on the CPU and on CUDA
gradients.py     warnings for rows that require gradients, if results carry none
selected.py      matrices for k-selection
unchanged.py     arrays that must not change while points are prepared
"""

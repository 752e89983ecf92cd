"""Checks of arrays of every library and dtype, and their conversion to rows.

kinds.py         the library and the device of an array
bfloat16.py      bfloat16, a dtype that NumPy lacks
rows.py          points and queries in host memory
device_rows.py   points and queries on CUDA, selection of rows, and conversion of results
bits.py          rows of bits
values.py        checks for NaN, infinity and other refused values, on the CPU and on CUDA
gradients.py     warnings if rows require gradients that results do not carry
selected.py      matrices for k-selection
unchanged.py     detection of changes of an array after its points were prepared
"""

"""Kernels that belong to no particular method, and the naming conventions of all kernels.

x_ptr           a pointer to an argument or to a row of it; x_ptrs: a tensor of pointers
n m d k         the number of points, of queries, of dimensions, of neighbours; likewise rows, parts, tiles, ...
stride          elements between consecutive rows; x_stride if several tensors have rows
program         the program id; row, part, tile, ...: the index of the row, part or tile that the program works on
row column      row and column numbers, likewise slot, lane, step, ...: scalars or tensors; ids: ids of points
at              offsets from a pointer; begin, end: the bounds of a half-open range
present         mask of the rows (points, values, pairs) that exist; x_present if a kernel has several
inside          mask of the columns that exist
taken, kept     mask of the chosen elements; mask: a mask passed as a parameter
ROWS COLUMNS    constants are in capitals: tile sizes, and flags such as HAS_X
# [ROWS, D]     the shape of a tile, where it is first loaded
"""

"""Kernels that belong to no one method, and the names that kernels of every room share.

x_ptr           one address, of an argument or of one row of it; x_ptrs: a tensor of addresses
n m d k         points, queries, dimensions, neighbours; rows, parts, tiles, ...: how many there are
stride          elements between neighbouring rows; x_stride where several tensors have rows
program         the program's number; row, part, tile, ...: what of these it works on
row column      numbers of rows, of columns and the like (slot, lane, step, ...), scalars or tensors; ids: of points
at              offsets from an address; begin, end: a range that ends before `end`
present         mask of the rows (points, values, pairs) that exist; x_present where a kernel has several
inside          mask of the columns that a row has
taken, kept     mask of what is chosen of these; mask: a parameter, any mask
ROWS COLUMNS    constants are in capitals: sides of tiles, HAS_X and other conditions
# [ROWS, D]     the shape of a tile, where it is first loaded
"""

"""What every method needs on CUDA, whatever it computes there.

streams.py        tensors that are kept between searches, written on one stream and read on another
matrix_units.py   whether a device's matrix units add as docs/exactness.md assumes
kernels/          the kernels of this room
"""

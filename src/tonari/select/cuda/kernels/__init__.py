"""Triton kernels of k-selection on CUDA, named after their launchers.

ordering/    kernels that order neighbour lists
registers/   what a program does with a row, or a part of it, in its registers
"""

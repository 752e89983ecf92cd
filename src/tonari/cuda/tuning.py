"""Judgments of the tools that all methods share on CUDA: they change how fast these are, and no answer."""

# Case: exact_cuda cold-k10, cold-k256, cold-graph on cuda. Chosen on: H100.
# What orders kernels about as long as they take to compile, in instructions of the interpreter.
INSTRUCTIONS_OF_STEP = 100  # of a sorting network (select/cuda/kernels/network.py)
INSTRUCTIONS_OF_PRODUCT = 3000  # of matrices
HELD = 8  # values of a thread, for which a kernel takes as long as for one
METRICS = 2  # a kernel that has the code of all metrics compiles about half of it

"""The buffered traversal of gieseke2014, which auto never takes: `traversal="buffered"` in a plan names it.

    rounds.py          what its rounds count
    cuda/buffered.py   its rounds on CUDA (cuda/kernels/find_leaf.py, cuda/kernels/process_buffers.py)

On the CPU a block of queries is one call of native/kdtree/buffered.hpp; cpu/search.py makes it.
"""

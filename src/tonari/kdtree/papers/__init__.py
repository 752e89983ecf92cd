"""The buffered traversal of gieseke2014, which is used only if a plan has `traversal="buffered"`.

    rounds.py          counters of the rounds
    cuda/buffered.py   the rounds on CUDA (cuda/kernels/find_leaf.py, cuda/kernels/process_buffers.py)

On the CPU, native/kdtree/buffered.hpp does the rounds of a block of queries; cpu/search.py calls it.
"""

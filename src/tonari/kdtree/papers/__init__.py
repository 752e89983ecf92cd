"""The buffered traversal of gieseke2014, used only if a plan has `traversal="buffered"`.

    rounds.py          counters of its rounds
    cuda/buffered.py   its rounds on CUDA (cuda/kernels/find_leaf.py, cuda/kernels/process_buffers.py)

On the CPU a block of queries is one call of native/kdtree/buffered.hpp; cpu/search.py makes it.
"""

"""CUDA support that all methods share.

launch.py           fast kernel launches, with arguments by name
rehearsal.py        recording the kernels that some work launches, without data
ahead.py            compiling all kernels of a search together, when one is missing
compile.py          compiling several launches at once, and looking them up in Triton's cache on disk
devices.py          moving rows to a device; selecting the current device
device_threads.py   one thread per device
staging.py          copies in the background: threads, pinned buffers, a stream
prefetch.py         copying rows from host memory while the device works
collect.py          copying results to host memory while the device works
streams.py          kept tensors, written on one stream and read on another
memory.py           free memory of devices
self_neighbors.py   adding each point to its own neighbour list, or removing it
matrix_units.py     a test that a device's matrix units add as docs/exactness.md assumes
kernels/            kernels of this subpackage; naming conventions for all kernels
"""

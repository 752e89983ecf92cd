"""CUDA support that all methods share: launches, compilation, copies and streams.

launch.py           launches kernels fast, with arguments by name
rehearsal.py        records the kernels that some work launches, by running it without data
ahead.py            compiles all kernels of a search together, when one of them is missing
compile.py          compiles several kernels at once, and finds compiled ones in Triton's cache on disk
devices.py          moves rows to a device, and selects the current device
device_threads.py   runs one thread per device
staging.py          copies in the background, by threads, pinned buffers and a stream
prefetch.py         copies rows from host memory while the device works
collect.py          copies results to host memory while the device works
streams.py          lets tensors that are written on one stream be read on another
memory.py           measures the free memory of devices
self_neighbors.py   adds each point to its own neighbour list, or removes it
matrix_units.py     tests that a device's matrix units add as docs/exactness.md assumes
kernels/            has the kernels of this subpackage, and naming conventions for all kernels
"""

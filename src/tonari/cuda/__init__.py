"""CUDA support that all methods share: launches, compilation, copies and streams.

launch.py           launches kernels fast, with arguments by name
compiling/          compiles all kernels of a search together, before the first of them is launched
copying/            copies between host memory and a device while the device works
devices.py          moves rows to a device, and selects the current device
host_rows.py        lets a device read single rows from host memory
device_threads.py   runs one thread per device
streams.py          lets tensors that are written on one stream be read on another
memory.py           measures the free memory of devices
pace.py             keeps the host at most one step of work ahead of a device
recorded.py         captures launches as a CUDA graph
self_neighbors.py   adds each point to its own neighbour list, or removes it
matrix_units.py     tests that a device's matrix units add as docs/exactness.md assumes
kernels/            the kernels of this subpackage, and the naming conventions of all kernels
"""

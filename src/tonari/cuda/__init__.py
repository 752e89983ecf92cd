"""CUDA support that all methods share: launches, compilation, copies and streams.

launch.py           launches kernels fast, with arguments by name
compiling/          compiles all kernels of a search together, before the first of them is launched
copying/            copies between host memory and a device while the device works
devices.py          moves rows to a device, and selects the current device
device_threads.py   runs one thread per device
streams.py          lets tensors that are written on one stream be read on another
memory.py           measures the free memory of devices
self_neighbors.py   adds each point to its own neighbour list, or removes it
matrix_units.py     tests that a device's matrix units add as docs/exactness.md assumes
kernels/            has the kernels of this subpackage, and naming conventions for all kernels
"""

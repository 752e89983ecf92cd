"""What every method needs on CUDA, whatever it computes there.

launch.py           a kernel is launched, its arguments by name
devices.py          rows brought to a device; the device that is current
device_threads.py   a thread for each of several devices
prefetch.py         rows on their way from host memory while the device works on others
streams.py          tensors that are kept between searches, written on one stream and read on another
self_neighbors.py   each point put before its neighbours, or left out
matrix_units.py     whether a device's matrix units add as docs/exactness.md assumes
kernels/            the kernels of this room; the names that all kernels share
"""

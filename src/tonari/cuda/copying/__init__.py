"""Copy rows and results between host memory and a device while the device works.

staging.py    threads, pinned buffers and a stream, for both directions
prefetch.py   copies rows to a device
"""

"""Copies between host memory and a device while the device works.

staging.py    threads, pinned buffers and a stream that both directions share
prefetch.py   copies rows to a device
collect.py    copies results to host memory
"""

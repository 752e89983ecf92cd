"""Compile all kernels of a search together, before the first of them is launched.

rehearsal.py    records the kernels that a search launches, by running it on tensors without data
ahead.py        rehearses a search and compiles its kernels, at the first launch of a kernel that is missing
compile.py      compiles several kernels at once, and finds compiled ones in Triton's cache on disk
beginning.py    prepares the first compilation of a process, while the modules of a search are imported
effort.py       estimates how long kernels take to compile; the slowest are compiled first
keys.py         makes the keys of Triton's cache the same in every process
loading.py      the threads that compile kernels and load them
translation.py  lets Triton translate kernels without repeating work
"""

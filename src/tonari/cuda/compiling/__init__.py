"""Compilation of all kernels of a search together.

rehearsal.py    records the kernels that some work launches, by running it without data
ahead.py        decides when to rehearse and compile: at the first launch of a kernel that is missing
compile.py      compiles several kernels at once, and finds compiled ones in Triton's cache on disk
beginning.py    prepares the first compilation of a process, while a search is imported
effort.py       estimates how long kernels take to compile: the longest are first
keys.py         makes the keys of Triton's cache the same in every process
loading.py      the threads that compile kernels and load them
translation.py  lets Triton translate kernels without repeating work
"""

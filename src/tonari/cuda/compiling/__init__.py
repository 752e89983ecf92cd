"""Compilation of all kernels of a search together.

rehearsal.py    records the kernels that some work launches, by running it without data
ahead.py        decides when to rehearse and compile: at the first launch of a kernel that is missing
compile.py      compiles several kernels at once, and finds compiled ones in Triton's cache on disk
translation.py  lets Triton translate kernels without repeating work
"""

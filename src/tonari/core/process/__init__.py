"""The process that calls the library, and the machine that it runs on.

workers.py       threads: their number, and running a list of tasks on them
leaving.py       interpreter exit while threads are still running
progress.py      progress bars and callbacks
caches.py        caches of the process, and a function that empties all of them
compiling.py     public functions that torch.compile does not trace into
garbage.py       the garbage collector, switched off for a while
callers.py       the stack level of the caller, for warnings
floats.py        the floating-point environment of the public functions
isa.py           the instruction set of the CPU kernels
host_memory.py   the free memory of the host
"""

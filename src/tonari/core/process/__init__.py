"""The process in which the library runs, and its machine.

workers.py       threads: chooses their number, and runs lists of tasks on them
leaving.py       ends threads that are still running when the interpreter exits
progress.py      progress bars and callbacks
caches.py        caches of the process, and a function that empties them all
compiling.py     keeps torch.compile from tracing into public functions
garbage.py       switches Python's garbage collector off for a while
callers.py       finds the stack level of the caller, for warnings
floats.py        the floating-point environment of the public functions
isa.py           the instruction set of the CPU kernels
host_memory.py   the free memory of the host
"""

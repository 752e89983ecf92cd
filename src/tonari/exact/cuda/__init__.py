"""Brute force on CUDA: matrix units rank points, exact float64 values decide, and a bound proves each row.

From the top, each folder imports those below it alone:

    method.py      the registered method; dispatch.py runs the plan's route on the plan's devices
    replay/        small searches that are repeated: their launches are kept
    routes/        where points and queries are: resident, streamed, host_refine, multi_gpu
    attempts/      the ways to search rows once, and the order in which rows that are left are searched again
    planning.py    makes the plan, of what divisions.py offers, by the memory that it needs (memory.py)
    screens/       lower bounds of all points, in low precision, and the points that these leave to refine
    refine/        exact values of that, in order, and the proof of each row
    rows/          the form of rows, packed copies of it, and fewer rows or columns
    plan.py        the plan: every choice of a search that is made before it begins
    kernels/       one kernel per file, in folders of the same names

docs/gpu.md has measurements, docs/exactness.md the proof.
"""

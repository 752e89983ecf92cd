"""Brute force on CUDA: matrix units rank points, exact float64 values decide, and a bound proves each row.

From the top, each folder imports those below it alone:

    method.py      the registered method; dispatch.py runs the plan's route on the plan's devices
    replay/        launches of small searches, kept and replayed when a search is repeated
    routes/        searches by the place of points and queries: resident, streamed, host_refine, multi_gpu
    attempts/      the ways to search rows once, and the order in which unproved rows are searched again
    planning.py    chooses a plan from the divisions that divisions.py offers, by the memory they need (memory.py)
    screens/       lower bounds of all points, in low precision, and the candidates that they do not rule out
    refine/        exact values of the candidates, in order, and the proof of each row
    rows/          the form of rows, packed copies of it, and fewer rows or columns
    plan.py        the plan: every choice of a search that is made before it begins
    kernels/       one kernel per file, in folders of the same names

docs/gpu.md has measurements, docs/exactness.md the proof.
"""

"""The exact engine on CUDA: matrix units rank, exact float64 values decide, a bound proves each row.

    run.py          the plan's route is taken on the plan's devices
    resident.py     everything on one device            replay.py, graphs.py   small searches seen before
    streamed.py     slabs from host memory, feeding.py  screened.py            the CPU refines from host memory
    several.py      several devices, parts.py, threads.py
        │
    engine.py       batches of queries; the ladder that rows climb     batches.py   fewer at a time when memory is short
        │
    form.py         centre and scale, from a sample
    pack.py         rows -> float16 (or two of them) with measured errors
    sampling.py     how large a sample gives a threshold, and how long lists become
    screen.py       certified minima of groups (groups.py), written or listed     screen_elementwise.py   l1, linf, chi2
    chosen.py       the lowest listed groups, and a bound on all others
    refine.py       exact values of their members, in order (order.py)
    certify.py      is the row proved?

    own.py          column 0 of a graph with self     merging.py   lists over parts     places.py   where tensors lie

Each kernel has a file of its own, ``_<name>_triton.py``; ``_screen_hopper_gluon.py`` is for Hopper alone. docs/gpu.md
has the figures, docs/exactness.md the proof.
"""

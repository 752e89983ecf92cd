"""Brute force on CUDA: matrix units rank, exact float64 values decide, a bound proves each row.

    plan.py, memory.py   every choice, and what it holds in memory
    dispatch.py          the plan's route is taken on the plan's devices
    routes/              resident, streamed, host_refine, multi_gpu; partition.py: what a part of a search is
    cuda_graph_cache.py, cuda_graph_capture.py   small searches seen before are replayed as CUDA graphs
        │
    search.py            batches of queries, retried at the next precision      oom_retry.py   fewer at a time
        │
    form.py              centre and scale, from a sample
    pack.py              rows -> float16 (or two of them) with measured errors
    sampling.py          how large a sample gives a threshold, and how long lists become
    screen.py            certified minima of groups (groups.py), written or listed
    screen_elementwise.py   the same for elementwise metrics
    candidate_groups.py  the lowest listed groups, and a bound on all others
    refine.py            exact values of their members, in order
    certify.py           is the row proved?
    kernels/             each kernel in a file of its own; screen_hopper is for Hopper alone

docs/gpu.md has the figures, docs/exactness.md the proof.
"""

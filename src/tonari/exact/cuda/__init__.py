"""Brute force on CUDA: matrix units rank points, exact float64 values decide, and a bound proves each row.

    method.py            the registered method
    plan.py, memory.py   every choice of a search, of what choices.py offers, and the memory that it needs
    dispatch.py          runs the plan's route on the plan's devices
    routes/              resident, streamed, host_refine, multi_gpu; partition.py: a part of a search
    cuda_graph_cache.py, cuda_graph_capture.py   repeated small searches are replayed as CUDA graphs
    few.py, few_kept.py  a few queries in two launches, which repeated searches make at once
        │
    copies.py, first_copies.py   leave out copies of rows that no answer can hold
    search.py            all batches of queries, and again the rows that are left    oom_retry.py   smaller batches
    neighbourhoods.py    the points near to rows that no bound separates
    batches.py           one batch, and the ways to search its rows again       compare_few.py   or with all points
        │
    form.py              centre and scale, from a sample
    pack.py              rows -> float16 (or two of them), or int8, with measured errors
    byte_points.py       which rows are whole numbers of a byte, and are screened in int8
    sampling.py          size of the sample for a threshold, and length of the lists
    contraction.py       rows of fewer coordinates, form_dim.py how many; contracted_screen.py screens them, and
                         contracted_search.py refines original rows on the device
    chooser.py           which groups are refined
    screen.py            certified minima of groups (groups.py), all of them or those below a threshold
    screen_elementwise.py   the same for elementwise metrics
    candidate_groups.py  the lowest listed groups, and a bound on all others
    refine.py            exact values of their members, in order
    certify.py           the proof of each row
    kernels/             one kernel per file; screen_hopper is for Hopper only

docs/gpu.md has measurements, docs/exactness.md the proof.
"""

"""Routes: one for each place where points and queries can be during a search on CUDA.

resident.py      everything is on one device
streamed.py      points, and if necessary queries, are copied to the device slab by slab
host_refine.py   the device screens; the CPU refines from host memory (host_search.py)
                 host_contracted.py: of contracted rows
multi_gpu.py     several devices divide the points or the queries
"""

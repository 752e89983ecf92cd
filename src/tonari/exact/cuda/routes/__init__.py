"""Routes: one way to search on CUDA for each combination of places of points and queries.

resident.py      everything is on one device
streamed.py      points, and if necessary queries, are copied to the device slab by slab
host_refine.py   the device screens; the CPU refines from host memory (host_search.py)
                 host_contracted.py: the same with contracted rows on the device
codes/           the device screens codes of the points, and reads candidates from host memory
multi_gpu.py     several devices divide the points or the queries
"""

"""Where points and queries are during a search on CUDA.

resident.py      everything on one device
streamed.py      points, or queries too, come slab by slab
host_refine.py   the device screens, the CPU refines from host memory
multi_gpu.py     several devices share the points or the queries
"""

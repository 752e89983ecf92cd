"""The workers that run the tasks of a build: this process (local.py), or the workers of Dask (on_dask.py)."""

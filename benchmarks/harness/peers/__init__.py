"""The libraries with which tonari is compared, each with the same interface.

==============  =====================================================================================================
``cpu``         faiss, scikit-learn, pykdtree and SciPy's cKDTree, each in a separate process
``cuda``        torch, cuVS, flashlib and certex, in the same process on the device
``cuda12``      makes certex, which is linked with CUDA 12, run with CUDA 13
``estimators``  scikit-learn's estimators and tonari's, each in a separate process
``graphs``      pynndescent in a separate process, cuVS's nn_descent on the device
``radius``      faiss, scikit-learn and cKDTree, for all points within a radius, each in a separate process
``sparse``      sparse_dot_topn, similaripy and scikit-learn, for sparse rows, each in a separate process
``trees``       fast_hdbscan, for minimum spanning trees, in a separate process
==============  =====================================================================================================
"""

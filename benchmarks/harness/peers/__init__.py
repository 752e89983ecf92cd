"""What tonari is measured against, each behind one signature.

==============  =====================================================================================================
``cpu``         faiss, scikit-learn, pykdtree and SciPy's cKDTree, in processes of their own
``cuda``        torch, cuVS and flashlib, beside us on the device
``estimators``  scikit-learn's estimators and tonari's, in a process each
``graphs``      pynndescent in a process of its own, cuVS's nn_descent on the device
``radius``      faiss, scikit-learn and cKDTree, for all within a radius, in processes of their own
``trees``       fast_hdbscan, for minimum spanning trees, in a process of its own
==============  =====================================================================================================
"""

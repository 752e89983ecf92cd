"""What tonari is measured against, each behind one signature.

=========  ==========================================================================================================
``cpu``    faiss, scikit-learn, pykdtree and SciPy's cKDTree, in processes of their own
``cuda``   torch, cuVS and flashlib, beside us on the device
``graphs`` pynndescent in a process of its own, cuVS's nn_descent on the device
=========  ==========================================================================================================
"""

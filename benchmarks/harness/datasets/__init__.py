"""Data sets of the benchmarks: the same arguments give the same rows on the same kind of device.

====================  ==============================================================================================
``photographs``       real SIFT descriptors, their principal components, pixels and patches of photographs
``made_up``           synthetic rows: Gaussian, clustered, half zeros, uniform
``sky``               a synthetic catalogue of the sky
``gist``              rows like GIST descriptors, of windows of photographs
``hard``              rows for exact search on a GPU, made on the device; some are hard for the screen
``few_dimensions``    rows for the k-d tree, as tensors on the device of the run
``clusters``          rows for NN-Descent, as tensors on the device of the run
``selections``        rows to select from
====================  ==============================================================================================
"""

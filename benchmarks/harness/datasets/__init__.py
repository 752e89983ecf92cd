"""Data of the benchmarks: the same arguments give the same rows on the same kind of device.

====================  ==============================================================================================
``photographs``       real SIFT descriptors, their principal components, pixels and patches of photographs
``made_up``           laws that can be written down: Gaussian, clustered, far from the origin, copies
``sky``               a synthetic catalogue of the sky
``gist``              rows like GIST, of windows of photographs
``hard``              rows for exact search on a GPU, made on the device, also such as defeat the screen
``few_dimensions``    rows for the k-d tree, as tensors where the run is
``clusters``          rows for NN-Descent, as tensors where the run is
``selections``        rows to select from
====================  ==============================================================================================
"""

"""The experiments of five papers, repeated on our machines, with those of their algorithms that tonari does not use.

==================  ================================================================================================
``tang2015``        queues, Buffered Search, Hierarchical Partition: figures 5 to 9, table I, the selection's share
``matsumoto2015``   thresholds from samples and min-max heaps: figures 5 to 12, the heap alone, a whole search
``komarov2014``     quick multi-select: figures 5 to 10, table 2, whole graphs
``gieseke2014``     buffer k-d trees: figures 2 to 6, table 2, both traversals
``wang2021``        NN-Descent that pushes (GNND): figures 4 to 7, its rounds compared with ours
==================  ================================================================================================
"""

NAMES = ("tang2015", "matsumoto2015", "komarov2014", "gieseke2014", "wang2021")

"""Drop-in for FAISS's flat indexes and ``faiss.knn``; import it by ``from tonari.compat import faiss``.

index_flat.py     IndexFlat, IndexFlatL2, IndexFlatIP
index_id_map.py   IndexIDMap, IndexIDMap2
nearest.py        knn, normalize_L2, omp_set_num_threads, omp_get_max_threads
arguments.py      conversion of FAISS's metric numbers and arrays, and padding of short lists

====================================================  ================================================================
covered                                               how
====================================================  ================================================================
``knn(xq, xb, k, metric)``                            D float32 and I int64, of shape (nq, k)
``IndexFlatL2``, ``IndexFlatIP``, ``IndexFlat``       ``add``, ``search``, ``range_search``, ``reconstruct``,
                                                      ``reconstruct_n``, ``remove_ids``, ``reset``, ``train``, which
                                                      does nothing;
                                                      ``d``, ``ntotal``, ``is_trained``, ``metric_type``, ``verbose``
``IndexIDMap``, ``IndexIDMap2``                       the same, and ``add_with_ids``; ``reconstruct`` only in
                                                      ``IndexIDMap2``
``normalize_L2``                                      in place
``omp_set_num_threads``, ``omp_get_max_threads``      for the searches of this module
``METRIC_L2``, ``METRIC_INNER_PRODUCT``,              1, 0, 2, 3 and 20, as in FAISS
``METRIC_L1``, ``METRIC_Linf``, ``METRIC_Canberra``
----------------------------------------------------  ----------------------------------------------------------------
refused                                               alternative
====================================================  ================================================================
other metrics; ``metric_arg``                         faiss
``write_index``, ``read_index``                       :meth:`tonari.Index.save`, :meth:`tonari.Index.load`, pickle
``params`` (an IDSelector)                            ``where`` and ``exclude`` of :func:`tonari.search`
buffers ``D``, ``I``, ``x`` for results               results are returned
NaN and infinity                                      faiss, which returns -1 for such a row
====================================================  ================================================================

As in FAISS, rows are converted to float32, L2 distances are squared, inner products descend, and a range search finds
points with a distance less than the threshold (an inner product greater than it). Missing neighbours are at the end of
a list, with index -1 and the largest float32 as distance (the lowest for inner products). Unlike in FAISS, distances
are float64 values rounded once, equal distances are in ascending order of index, and a range search returns neighbours
nearest first. In the Canberra distance, a term 0 / 0 counts as 0; FAISS does not find rows with such a term.

An index can be the ``custom_index`` of ``datasets.Dataset.add_faiss_index``, and can be pickled. ``faiss.write_index``
and ``faiss.index_cpu_to_gpu`` accept only FAISS's own indexes; for tensors on CUDA use :func:`tonari.search`.
"""

from tonari.compat.faiss.arguments import (
    METRIC_INNER_PRODUCT,
    METRIC_L1,
    METRIC_L2,
    METRIC_Canberra,
    METRIC_Linf,
)
from tonari.compat.faiss.index_flat import IndexFlat, IndexFlatIP, IndexFlatL2
from tonari.compat.faiss.index_id_map import IndexIDMap, IndexIDMap2
from tonari.compat.faiss.nearest import knn, normalize_L2, omp_get_max_threads, omp_set_num_threads
from tonari.core.hints import missing_from

__all__ = [
    "METRIC_INNER_PRODUCT",
    "METRIC_L1",
    "METRIC_L2",
    "IndexFlat",
    "IndexFlatIP",
    "IndexFlatL2",
    "IndexIDMap",
    "IndexIDMap2",
    "METRIC_Canberra",
    "METRIC_Linf",
    "knn",
    "normalize_L2",
    "omp_get_max_threads",
    "omp_set_num_threads",
]

__getattr__ = missing_from(__name__)

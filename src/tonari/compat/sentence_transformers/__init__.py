"""Drop-ins for the search functions of ``sentence_transformers.util``.

Import them by ``from tonari.compat.sentence_transformers import ...``.

util.py        semantic_search, paraphrase_mining_embeddings, community_detection
arguments.py   checks of embeddings and score functions

=======================================  ==============================================================================
covered                                  how
=======================================  ==============================================================================
``semantic_search``                      for each query a list of {"corpus_id", "score"}, the best first
``paraphrase_mining_embeddings``         a list of [score, i, j], i < j, the best first
``community_detection``                  lists of row numbers, the largest list first; each begins with its centre
embeddings                               tensors, arrays, and lists of them; queries go to the device of the corpus
``score_function``                       ``cos_sim``, ``dot_score``, ``euclidean_sim`` and ``manhattan_sim`` of
                                         sentence_transformers.util, or their names
``show_progress_bar``                    shows tonari's own bar
``query_chunk_size``,                    checked, no effect: tonari plans its memory itself
``corpus_chunk_size``, ``batch_size``
---------------------------------------  ------------------------------------------------------------------------------
refused                                  alternative
=======================================  ==============================================================================
other score functions                    sentence_transformers.util
sparse embeddings; NaN and infinity
=======================================  ==============================================================================

Scores in sentence_transformers are products of float32 numbers. Here they are 1 minus the cosine distance, a float64
value that is rounded once. Other differences:

- Equal scores are in ascending order of row numbers.
- Each embedding is paired with ``top_k`` other embeddings, even if it has copies.
- An embedding belongs to a community if its distance, 1 - cosine, is at most 1 - threshold.
"""

from tonari.compat.sentence_transformers.util import community_detection, paraphrase_mining_embeddings, semantic_search
from tonari.core.hints import missing_from

__all__ = ["community_detection", "paraphrase_mining_embeddings", "semantic_search"]

__getattr__ = missing_from(__name__)

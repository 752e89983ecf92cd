"""Search streams of queries: more queries than fit in memory, answered as they arrive.

    array, file or iterable      chunks.py      queries are cut into chunks, checked, and numbered through the stream
        │  a thread reads        pipeline.py    one chunk ahead of the search
        ▼
    the index's own search       searching.py   any method, any device; `Index.search_chunks` ends here
        │  a thread searches                    one chunk ahead of the consumer of the answers
        ▼
    a file, written in place     writing.py     `search_to_file`; a thread writes
                                 journal.py     the search and its progress, for a restart

Answers do not depend on the division into chunks: they have the same bits as a single search for all queries.
"""

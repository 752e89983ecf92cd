"""Streams of queries: more of them than memory holds, answered as they come.

    array, file or iterable      chunks.py      cut, checked, numbered from the beginning of the stream
        │  a thread reads        pipeline.py    one chunk ahead of the search
        ▼
    the index's own search       searching.py   any method, any device; `Index.search_chunks` ends here
        │  a thread searches                    one chunk ahead of whoever takes the answers
        ▼
    a file, written in place     writing.py     `search_to_file`; a thread writes
                                 journal.py     how far it is, and of which search: a restart goes on from there

An answer does not depend on how its stream was cut: it has the bits of one search of all queries.
"""

"""The fields of a brute-force plan that a caller may set."""

from __future__ import annotations

from tonari.core.plan import Override

ON_CPU = {
    "isa": Override("instruction set: generic, avx2, avx512, amx or neon", "word"),
    "precisions": Override("precisions of the screen, first to last: int8, bfloat16, float32", "words"),
    "form_dim": Override("columns that the screen compares; if fewer than d, rows are contracted to them", least=2),
    "look_dim": Override("columns of a look at contracted rows before form_dim columns are compared; 0: none", least=0),
    "direct": Override("whether exact values alone decide, without a screen", "flag"),
    "query_block": Override("queries that share one pass over the points"),
    "point_chunk": Override("points per slice of work, a multiple of 96"),
    "capacity": Override("survivors that a row can hold"),
    "sample_stride": Override(
        "interval of the groups of points that are screened first, for a threshold; 0: none", least=0
    ),
    "sample_rank": Override("rank in that sample that gives the threshold", least=0),
    "active_rows": Override("rows of a graph that share products; 0: none", least=0),
    "point_splits": Override("parts of the points that are searched in parallel"),
    "adaptive": Override("whether the first blocks may change the precision of the rest", "flag"),
    "resident": Override("whether packed points stay in memory", "flag"),
}
ON_CUDA = {
    "route": Override("resident, host_refine, codes or streamed", "word"),
    "shard": Override("what several devices divide: points or queries", "word"),
    "precisions": Override("precisions of the screen: float16, split, values; elementwise float32, values", "words"),
    "form_dim": Override(
        "columns that the screen compares: a number below d, full, or pilot: a sample decides (resident)",
        "word",
    ),
    "group": Override("points that share a lower bound: 8, 16 or 32"),
    "width": Override("groups of a row that are refined first"),
    "query_batch": Override("queries whose bounds are in memory at the same time"),
    "query_slab": Override("queries on a device at the same time"),
    "point_slab": Override("points on a device at the same time"),
}

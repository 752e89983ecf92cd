"""Compiled kernels of tonari. Single-threaded, without the GIL, on array slices."""

from typing import Any

import numpy as np
import numpy.typing as npt

class DefaultFloats:
    def __init__(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

def has_default_floats() -> bool: ...
def set_leak_warnings(wanted: bool) -> None: ...
def supported_isas() -> list[str]: ...
def environment(first: str, second: str) -> tuple[bytes | None, bytes | None]: ...
def kernel_names() -> list[str]: ...
def look_kernel(screen: str) -> str: ...
def peak_rate(kernel: str, seconds: float = 0.2) -> float: ...
def first_nonfinite_row(rows: npt.NDArray[Any], begin: int = 0, end: int | None = None) -> int: ...
def first_negative_row(rows: npt.NDArray[Any], begin: int = 0, end: int | None = None) -> int: ...
def hash_rows(rows: npt.NDArray[Any], step: int, hashes: npt.NDArray[np.uint64]) -> None: ...
def mark_copies(
    rows: npt.NDArray[Any],
    hashes: npt.NDArray[np.uint64],
    order: npt.NDArray[np.int64],
    begin: int,
    end: int,
    copies: npt.NDArray[np.uint8],
) -> None: ...
def column_means(rows: npt.NDArray[Any], step: int = 1) -> list[float]: ...
def largest_magnitude(rows: npt.NDArray[Any], centre: list[float], step: int = 1) -> float: ...
def exact_values(
    metric: str,
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    indices: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
) -> None: ...
def search_directly(
    metric: str,
    isa: str,
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    k: int,
    self_ids: npt.NDArray[np.int64] | None,
    distances: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    checked: bool = True,
) -> bool: ...
def search_listed(
    metric: str,
    isa: str,
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    k: int,
    self_ids: npt.NDArray[np.int64] | None,
    listed: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    distances: npt.NDArray[Any],
    indices: npt.NDArray[Any],
) -> None: ...

class Allowed:
    def __init__(
        self,
        m: int,
        n: int,
        mask: npt.NDArray[np.uint8] | None,
        packed: bool,
        query_groups: npt.NDArray[np.int64] | None,
        point_groups: npt.NDArray[np.int64] | None,
        same: bool,
        excluded: npt.NDArray[np.int64] | None,
        window: int,
        rows: npt.NDArray[np.int64] | None,
        ids: npt.NDArray[np.int64] | None,
    ) -> None: ...
    def of_rows(self, rows: npt.NDArray[np.int64]) -> Allowed: ...
    def fill(self, table: npt.NDArray[np.uint8]) -> None: ...

def find_directly(
    metric: str,
    isa: str,
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    limits: npt.NDArray[Any],
    self_ids: npt.NDArray[np.int64] | None,
    allowed: Allowed | None,
    later: bool,
    indptr: npt.NDArray[np.int64],
    distances: npt.NDArray[Any],
    indices: npt.NDArray[Any],
) -> int: ...
def count_directly(
    metric: str,
    isa: str,
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    limits: npt.NDArray[Any],
    self_ids: npt.NDArray[np.int64] | None,
    allowed: Allowed | None,
    counts: npt.NDArray[np.int64],
) -> None: ...
def count_listed(
    metric: str,
    isa: str,
    queries: npt.NDArray[Any],
    points: npt.NDArray[Any],
    limits: npt.NDArray[np.float64],
    listed: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> None: ...

class Form:
    def __init__(
        self, metric: str, centre: list[float], scale: float, directions: npt.NDArray[np.float64] | None = None
    ) -> None: ...
    @property
    def columns(self) -> int: ...
    def directions(self, values: npt.NDArray[np.float64]) -> None: ...
    def contracted(self, points: npt.NDArray[Any], step: int, columns: int) -> Form: ...
    def narrowed(self, columns: int) -> Form: ...
    def screened_rows(self, points: npt.NDArray[Any], step: int, rows: npt.NDArray[np.float64]) -> None: ...

def products(
    rows: npt.NDArray[np.float64], others: npt.NDArray[np.float64], found: npt.NDArray[np.float64]
) -> None: ...

class PackedPoints:
    def __init__(
        self,
        kernel: str,
        form: Form,
        points: npt.NDArray[Any],
        begin: int,
        end: int,
        errors: bool = True,
        order: npt.NDArray[np.int64] | None = None,
        look: Form | None = None,
    ) -> None: ...
    @property
    def group(self) -> int: ...
    @property
    def groups(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def looks(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def write(self, bytes: npt.NDArray[np.uint8]) -> None: ...

def restored_points(kernel: str, form: Form, begin: int, end: int, bytes: npt.NDArray[np.uint8]) -> PackedPoints: ...

class SelfJoin:
    def __init__(
        self,
        kernel: str,
        form: Form,
        points: npt.NDArray[Any],
        k: int,
        isa: str,
        self_ids: npt.NDArray[np.int64],
        double_output: bool,
        may_retry: bool,
        capacity: int,
        growth: int,
        look: Form | None = None,
        order: npt.NDArray[np.int64] | None = None,
        sketch: npt.NDArray[np.float32] | None = None,
    ) -> None: ...
    def open(self, begin: int, end: int) -> None: ...
    def prepare(self, begin: int, end: int, packed: PackedPoints) -> None: ...
    def know(self, begin: int, end: int, values: npt.NDArray[np.float64]) -> None: ...
    def finish(
        self,
        begin: int,
        end: int,
        distances: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        status: npt.NDArray[np.uint8],
        first: int,
        last: int,
    ) -> int: ...

class JoinWorker:
    def __init__(self, join: SelfJoin) -> None: ...
    def open(self, begin: int, end: int) -> None: ...
    def screen(
        self,
        points: PackedPoints,
        group_begin: int,
        group_end: int,
        both: bool,
        looks: bool = False,
    ) -> None: ...
    @property
    def looked(self) -> tuple[int, int, int]: ...

class RowBlock:
    def __init__(
        self,
        kernel: str,
        form: Form,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        k: int,
        isa: str,
        self_ids: npt.NDArray[np.int64] | None,
        double_output: bool,
        may_retry: bool,
        capacity: int,
        sample_rank: int,
        look: Form | None = None,
        order: npt.NDArray[np.int64] | None = None,
        sketch: npt.NDArray[np.float32] | None = None,
    ) -> None: ...
    @property
    def looked(self) -> tuple[int, int, int]: ...
    def open(
        self,
        begin: int,
        end: int,
        places: npt.NDArray[np.int64] | None = None,
        asked: npt.NDArray[np.float32] | None = None,
    ) -> None: ...
    def screen(
        self,
        points: PackedPoints,
        group_begin: int,
        group_end: int,
        stride: int = 0,
        take_stride: bool = False,
        looks: bool = False,
    ) -> None: ...
    def end_sample(self) -> None: ...
    def absorb(self, other: RowBlock) -> None: ...
    def finish(self, distances: npt.NDArray[Any], indices: npt.NDArray[Any], status: npt.NDArray[np.uint8]) -> int: ...

class RadiusBlock:
    def __init__(
        self,
        kernel: str,
        form: Form,
        queries: npt.NDArray[Any],
        points: npt.NDArray[Any],
        isa: str,
        limits: npt.NDArray[np.float64],
        self_ids: npt.NDArray[np.int64] | None,
        later: bool,
        lists: bool,
        double_output: bool,
        room: int,
        look: Form | None = None,
        order: npt.NDArray[np.int64] | None = None,
        allowed: Allowed | None = None,
    ) -> None: ...
    def open(self, begin: int, end: int) -> None: ...
    def screen(self, points: PackedPoints, group_begin: int, group_end: int, looks: bool = False) -> bool: ...
    def absorb(self, other: RadiusBlock) -> None: ...
    def count(self, counts: npt.NDArray[np.int64]) -> int: ...
    def write(self, distances: npt.NDArray[Any], indices: npt.NDArray[Any]) -> None: ...
    @property
    def looked(self) -> tuple[int, int, int]: ...
    @property
    def full(self) -> bool: ...
    @property
    def found(self) -> int: ...

class BitBlock:
    def __init__(
        self,
        isa: str,
        metric: str,
        queries: npt.NDArray[np.uint8],
        words: npt.NDArray[np.uint32],
        counts: npt.NDArray[np.int32],
        n: int,
        k: int,
        limits: npt.NDArray[np.float32] | None,
        self_ids: npt.NDArray[np.int64] | None,
        lists: bool,
    ) -> None: ...
    def scan(self, begin: int, end: int) -> None: ...
    def absorb(self, other: BitBlock) -> None: ...
    def count(self, counts: npt.NDArray[np.int64]) -> None: ...
    def write(self, distances: npt.NDArray[np.float32], indices: npt.NDArray[Any]) -> None: ...

def search_listed_bits(
    metric: str,
    isa: str,
    queries: npt.NDArray[np.uint8],
    points: npt.NDArray[np.uint8],
    k: int,
    self_ids: npt.NDArray[np.int64] | None,
    listed: npt.NDArray[np.int64],
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    distances: npt.NDArray[np.float32],
    indices: npt.NDArray[Any],
) -> None: ...
def pack_bits(rows: npt.NDArray[np.uint8], words: npt.NDArray[np.uint32], counts: npt.NDArray[np.int32]) -> None: ...

class SparseRows:
    def __init__(
        self, indptr: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], values: npt.NDArray[Any], d: int
    ) -> None: ...

class SparsePoints:
    def __init__(self, metric: str, rows: SparseRows, ranks: npt.NDArray[np.int32], ranked: int) -> None: ...
    def bytes(self) -> int: ...
    def squares(self, squares: npt.NDArray[np.float64]) -> None: ...

class SparseBlock:
    def __init__(
        self,
        isa: str,
        points: SparsePoints,
        queries: SparseRows,
        ranks: npt.NDArray[np.int32],
        begin: int,
        end: int,
        k: int,
        limits: npt.NDArray[np.float64] | None,
        own: bool,
        later: bool,
        counted: bool,
        allowed: Allowed | None,
        left: npt.NDArray[np.bool_] | None,
    ) -> None: ...
    def scan(self, begin: int, end: int) -> None: ...
    def refine(self, begin: int, end: int) -> None: ...
    def refined(self) -> int: ...
    def count(self, counts: npt.NDArray[np.int64]) -> None: ...
    def write(self, distances: npt.NDArray[Any], indices: npt.NDArray[np.int32]) -> None: ...

class SelectCounters:
    def __init__(self) -> None: ...
    @property
    def updates(self) -> list[int]: ...
    @property
    def merges(self) -> int: ...
    @property
    def flushes(self) -> int: ...
    @property
    def examined(self) -> int: ...
    @property
    def lanes(self) -> int: ...
    @property
    def compression(self) -> float: ...
    @property
    def batches(self) -> int: ...
    @property
    def threshold_ratio(self) -> float: ...
    @property
    def rows(self) -> int: ...

def select_rows(
    isa: str,
    method: str,
    values: npt.NDArray[Any],
    value_type: str,
    begin: int,
    end: int,
    k: int,
    *,
    lengths: npt.NDArray[np.int64] | None,
    largest: bool,
    sorted: bool,
    options: dict[str, Any],
    out_values: npt.NDArray[Any],
    out_indices: npt.NDArray[np.int32],
    counters: SelectCounters | None,
) -> int: ...

class TreeTop:
    def count(self, range: int) -> None: ...
    def cut(self, node: int) -> bool: ...
    def descend(self) -> None: ...
    def tally(self, range: int) -> None: ...
    def place(self, range: int, ids: npt.NDArray[Any]) -> None: ...

def tree_top(
    points: npt.NDArray[Any],
    levels: int,
    ranges: int,
    dimensions: npt.NDArray[np.int32],
    values: npt.NDArray[Any],
) -> TreeTop: ...
def tree_below(
    points: npt.NDArray[Any],
    level: int,
    index: int,
    ids: npt.NDArray[Any],
    dimensions: npt.NDArray[np.int32],
    values: npt.NDArray[Any],
    blocks: npt.NDArray[Any],
    boxes: npt.NDArray[Any],
    height: int,
) -> None: ...

class TreeView:
    def __init__(
        self,
        height: int,
        rows: npt.NDArray[Any],
        begins: npt.NDArray[np.int64],
        ids: npt.NDArray[Any],
        boxes: list[npt.NDArray[Any]],
        split_dimensions: npt.NDArray[np.int32],
        split_values: npt.NDArray[Any],
    ) -> None: ...
    def first_leaves(self, queries: npt.NDArray[Any], begin: int, end: int, leaves: npt.NDArray[np.int32]) -> None: ...

def order_by_leaf(leaves: npt.NDArray[np.int32], count: int, order: npt.NDArray[np.int64]) -> None: ...

class Forest:
    def __init__(
        self,
        tree: TreeView,
        isa: str,
        metric: str,
        core: npt.NDArray[np.float64],
        distances: npt.NDArray[Any],
        indices: npt.NDArray[Any],
    ) -> None: ...
    @property
    def count(self) -> int: ...
    def offer_listed(self, begin: int, end: int) -> None: ...
    def walk(self, begin: int, end: int, budget: int) -> int: ...
    def merge(self) -> None: ...
    def write(self, weights: npt.NDArray[np.float64], pairs: npt.NDArray[np.int64]) -> None: ...

class TreeSearch:
    def __init__(
        self,
        tree: TreeView,
        isa: str,
        metric: str,
        k: int,
        queries: npt.NDArray[Any],
        order: npt.NDArray[np.int64] | None,
        self_ids: npt.NDArray[np.int64] | None,
        distances: npt.NDArray[Any],
        indices: npt.NDArray[Any],
    ) -> None: ...
    def run(self, begin: int, end: int, budget: int) -> tuple[int, int, int, int]: ...

class TreeRadius:
    def __init__(
        self,
        tree: TreeView,
        isa: str,
        metric: str,
        queries: npt.NDArray[Any],
        order: npt.NDArray[np.int64] | None,
        limits: npt.NDArray[np.float64],
        self_ids: npt.NDArray[np.int64] | None,
        later: bool,
        lists: bool,
        double_output: bool,
        counts: npt.NDArray[np.int64],
        allowed: Allowed | None = None,
    ) -> None: ...

class TreeRadiusBlock:
    def __init__(self, search: TreeRadius, begin: int, end: int) -> None: ...
    @property
    def finished(self) -> bool: ...
    def run(self, budget: int) -> tuple[int, int, int, int]: ...
    def write(self, indptr: npt.NDArray[np.int64], distances: npt.NDArray[Any], indices: npt.NDArray[Any]) -> None: ...

class TreeRounds:
    def __init__(self, search: TreeSearch, begin: int, end: int, buffer: int) -> None: ...
    def run(self, budget: int) -> tuple[int, int, int, int]: ...
    def counts(self) -> tuple[int, int, int, int, float, float]: ...

def add_reverse(
    entries: npt.NDArray[np.int32],
    column: int,
    begin: int,
    end: int,
    counts: npt.NDArray[np.int32],
    behind: npt.NDArray[np.int32],
) -> None: ...
def end_reverse(
    entries: npt.NDArray[np.int32],
    begin: int,
    end: int,
    counts: npt.NDArray[np.int32],
    behind: npt.NDArray[np.int32],
) -> None: ...
def has_point_terms(metric: str, points: npt.NDArray[Any]) -> bool: ...
def point_terms(
    metric: str, points: npt.NDArray[Any], begin: int, end: int, terms: npt.NDArray[np.float32]
) -> None: ...

class DescentRound:
    def __init__(
        self,
        isa: str,
        metric: str,
        points: npt.NDArray[Any],
        terms: npt.NDArray[np.float32] | None,
        entries: npt.NDArray[np.int32],
        behind: npt.NDArray[np.int32],
        hubs: int,
        breadth: int,
        width: int,
        boundary: int,
        order: npt.NDArray[np.int32] | None,
        kept: npt.NDArray[np.int32],
        distances: npt.NDArray[Any],
        indices: npt.NDArray[np.int32],
        sums: npt.NDArray[np.float64],
    ) -> None: ...
    def run(self, begin: int, end: int) -> int: ...

def best_scores(
    kernel: str,
    form: Form,
    queries: npt.NDArray[Any],
    begin: int,
    end: int,
    packed: list[PackedPoints],
    places: npt.NDArray[np.int32],
) -> None: ...

class Pieces:
    def __init__(
        self,
        order: npt.NDArray[np.int32],
        begins: npt.NDArray[np.int64],
        clusters: npt.NDArray[np.int64],
        sides: npt.NDArray[np.int64],
        firsts: npt.NDArray[np.int64],
    ) -> None: ...

class ClusterSearch:
    def __init__(
        self,
        kernel: str,
        form: Form,
        rows: npt.NDArray[Any],
        seekers: Pieces,
        members: Pieces,
        packed: list[PackedPoints],
        near: npt.NDArray[np.int32],
        places: npt.NDArray[np.int32] | None,
        probes: int,
        most: int,
        boundary: int,
        mark: int,
        entries: npt.NDArray[np.int32],
    ) -> None: ...
    def run(self, begin: int, end: int) -> None: ...

def merge_into(
    distances: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    rows: npt.NDArray[np.int64],
    other_distances: npt.NDArray[Any],
    other_indices: npt.NDArray[Any],
    descending: bool,
) -> None: ...

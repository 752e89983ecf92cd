"""wang2021 (GNND), section 4: rounds in which each point introduces its neighbours to one another, on a GPU.

    sample    of each list the first p NEW and the first p OLD entries; those that sample a point follow, up to 2p   4.1
    match     a point's NEW samples with each other and with its OLD ones, as tiles on matrix units                  4.2
    propose   to each sample its nearest NEW one and, if it is NEW itself, its nearest OLD one                       4.3
    update    what is proposed goes into the lists of others                                                         4.3

Our rounds pull: a row reads what others list and writes itself (docs/graphs.md). These push, by one of two updates:

- ``locks``, the paper's: a spinlock for each segment of 32 entries, a warp that inserts one proposal after the other.
  Reverse samples are appended atomically, in any order, so that another run makes another graph.
- ``proposals``: they are sorted by target and merged by rank into lists of one segment, and reverse samples come by
  rank (``reverse_of`` of ours). Nothing is locked, and every run makes the same graph.

Both begin with p random neighbours, compare the float16 rows that our start compares, and end with exact values of all
that is listed, as our rounds do. The paper inserts in the kernel that matches; here proposals of a slice of the points
are written down in between, which costs a few bytes beside the rows that are gathered, and serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tonari.core.neighbors import Neighbors
    from tonari.nn_descent.cuda.form import Form

LIST_SIZE, SAMPLES = 64, 32  # the paper's k and p for descriptors
SEGMENT = 32  # entries: one for each lane of a warp
SLICE = 1 << 18  # points whose proposals there are at once: 12 bytes each, 6p of a point
BLOCK = 1024  # pairs of a program that appends
CHUNK = 32  # proposals that are merged at once
WARPS = 4
REGISTERS = 128  # of a thread that matches: so four programs share a processor


class Lists(NamedTuple):
    """Neighbours of n points while they grow, in segments; ``kernels`` tells the order.

    Attributes
    ----------
    entries : int32 tensor of shape (n, list_size)
        As ``tonari.nn_descent.entries`` says.
    distances : float32 tensor of the same shape
        Squared and scaled; infinite where an entry is missing.
    """

    entries: Any
    distances: Any

    def arguments(self) -> dict[str, Any]:
        """They as kernels' arguments."""
        return {"entries_ptr": self.entries, "distances_ptr": self.distances}


class Locks:
    """Updates behind spinlocks, one for each segment of a list."""

    def __init__(self, n: int, list_size: int, device: Any) -> None:
        import torch

        self.segment = min(SEGMENT, list_size)
        self._locks = torch.zeros((n, list_size // self.segment), dtype=torch.int32, device=device)

    def reverse(self, samples: Any, room: int) -> Any:
        """Up to `room` rows that sample each point: the first to come."""
        import torch

        from tonari.cuda.launch import launch

        from .kernels import append_kernel

        n, count = samples.shape
        counts = torch.zeros(n, dtype=torch.int32, device=samples.device)
        found = torch.full((n, room), -1, dtype=torch.int32, device=samples.device)
        constants = {"SAMPLES": count, "ROOM": room, "BLOCK": BLOCK}
        programs = -(-samples.numel() // BLOCK)
        arguments = {"listed_ptr": samples, "counts_ptr": counts, "reverse_ptr": found, "pairs": samples.numel()}
        launch(append_kernel, programs, arguments, constants=constants, warps=WARPS)
        return found

    def update(self, lists: Lists, keys: Any, ids: Any) -> None:
        """Insert proposals, (rows, 3, 2p): a warp for those of one row and kind."""
        from tonari.cuda.launch import launch

        from .kernels import insert_kernel

        rows, kinds, batch = keys.shape
        constants = {"BATCH": batch, "SIZE": lists.entries.shape[1], "SEGMENT": self.segment} | _bits("NEW", "ID")
        arguments = {"keys_ptr": keys, "ids_ptr": ids, **lists.arguments(), "locks_ptr": self._locks}
        launch(insert_kernel, rows * kinds, arguments, constants=constants, warps=1)


class Proposals:
    """Updates in two phases: all proposals are there and in order before any list changes."""

    def __init__(self, n: int, list_size: int, device: Any) -> None:
        import torch

        self.segment = list_size
        self._targets = torch.arange(n + 1, device=device) << 32

    def reverse(self, samples: Any, room: int) -> Any:
        """Up to `room` rows that sample each point: those that rank it best."""
        from tonari.nn_descent.cuda.reverse import reverse_of

        return reverse_of(samples, samples.shape[1], room)

    def update(self, lists: Lists, keys: Any, ids: Any) -> None:
        """Merge proposals of any shape."""
        import torch

        from tonari.cuda.launch import launch

        from .kernels import merge_kernel

        proposed = (keys.view(-1) >= 0).nonzero()[:, 0]
        keys, order = keys.view(-1)[proposed].sort()
        ids = ids.view(-1)[proposed[order]]
        firsts = torch.searchsorted(keys, self._targets)
        n, size = lists.entries.shape
        rows = _rows_of_a_program(keys)
        constants = {"SIZE": size, "CHUNK": CHUNK, "ROWS": rows} | _bits("NEW", "ID")
        arguments = {"keys_ptr": keys, "ids_ptr": ids, "firsts_ptr": firsts, **lists.arguments(), "n": n}
        launch(merge_kernel, -(-n // rows), arguments, constants=constants, warps=1)


UPDATES: dict[str, type[Locks] | type[Proposals]] = {"locks": Locks, "proposals": Proposals}


def build(
    points: Any,
    k: int,
    *,
    rounds: int,
    update: str,
    list_size: int = LIST_SIZE,
    samples: int = SAMPLES,
    seed: int = 0,
    watch: Callable[[Lists], object] | None = None,
) -> Neighbors:
    """An approximate graph of euclidean distances.

    Parameters
    ----------
    points : float32 or float16 tensor of shape (n, d)
    k : int
        At most `list_size`.
    rounds : int
    update : "locks" or "proposals"
    list_size : int
        A power of two.
    samples : int
        p, a power of two, 8 or more.
    seed : int
    watch : optional
        Called with the lists after each round; the next one changes them.

    Returns
    -------
    Neighbors of shape (n, k)
        Exact distances, float32.
    """
    from tonari.cuda.devices import on
    from tonari.nn_descent.cuda.form import form_of

    with on(points.device):
        form = form_of(points, "euclidean")
        method = UPDATES[update](len(points), list_size, points.device)
        lists = start(form, list_size, method.segment, samples, seed)
        for _ in range(rounds):
            descend(form, lists, method, samples)
            if watch is not None:
                watch(lists)
        return finish(points, lists, k)


def start(form: Form, size: int, segment: int, samples: int, seed: int) -> Lists:
    """Lists of `samples` random neighbours (algorithm 1, lines 1 to 5)."""
    import torch

    from tonari.cuda.launch import launch

    from .kernels import start_kernel

    n, width = form.rows.shape
    entries = torch.full((n, size), -1, dtype=torch.int32, device=form.rows.device)
    lists = Lists(entries, torch.full((n, size), torch.inf, device=form.rows.device))
    constants = _shape(width) | {"SAMPLES": samples, "SIZE": size, "SEGMENT": segment} | _bits("NEW")
    arguments = {"rows_ptr": form.rows, "terms_ptr": form.member_terms, **lists.arguments(), "n": n, "seed": seed}
    launch(start_kernel, n, arguments, constants=constants, warps=WARPS)
    return lists


def descend(form: Form, lists: Lists, method: Locks | Proposals, samples: int) -> None:
    """One round (algorithm 1, lines 8 to 33)."""
    import torch

    n, device = len(lists.entries), lists.entries.device
    new, old = (join(own, method.reverse(own, 2 * samples)) for own in sample(lists, samples))
    keys = torch.empty((min(n, SLICE), 3, 2 * samples), dtype=torch.int64, device=device)
    ids = torch.empty(keys.shape, dtype=torch.int32, device=device)
    for first in range(0, n, SLICE):
        here = slice(min(SLICE, n - first))
        cross(form, new, old, lists, method.segment, first, keys[here], ids[here])
        method.update(lists, keys[here], ids[here])


def sample(lists: Lists, samples: int) -> tuple[Any, Any]:
    """NEW and OLD samples of each list, int32 (n, samples), -1 behind the last; the NEW ones are OLD from now on."""
    import torch

    from tonari.cuda.launch import launch

    from .kernels import sample_kernel

    n, size = lists.entries.shape
    new, old = (torch.full((n, samples), -1, dtype=torch.int32, device=lists.entries.device) for _ in range(2))
    rows = _rows_of_a_program(new)
    constants = {"SIZE": size, "SAMPLES": samples, "ROWS": rows} | _bits("NEW", "ID")
    arguments = {**lists.arguments(), "new_ptr": new, "old_ptr": old, "n": n}
    launch(sample_kernel, -(-n // rows), arguments, constants=constants, warps=WARPS)
    return new, old


def join(own: Any, reverse: Any) -> Any:
    """Samples of one kind and who samples a point, int32 (n, 2p), -1 where there is none or one is repeated."""
    import torch

    from tonari.cuda.launch import launch

    from .kernels import join_kernel

    n, samples = own.shape
    joined = torch.empty_like(reverse)
    rows = _rows_of_a_program(own)
    constants = {"SAMPLES": samples, "ROWS": rows}
    arguments = {"own_ptr": own, "reverse_ptr": reverse, "samples_ptr": joined, "n": n}
    launch(join_kernel, -(-n // rows), arguments, constants=constants, warps=WARPS)
    return joined


def cross(form: Form, new: Any, old: Any, lists: Lists, segment: int, first: int, keys: Any, ids: Any) -> None:
    """Proposals of the points from `first` on, into int64 and int32 tensors of shape (rows, 3, 2p)."""
    from tonari.cuda.launch import launch

    from .kernels import cross_kernel

    constants = {"TILE": keys.shape[2], "SIZE": lists.entries.shape[1], "SEGMENT": segment}
    launch(
        cross_kernel,
        len(keys),
        {
            "rows_ptr": form.rows,
            "terms_ptr": form.member_terms,
            "new_ptr": new,
            "old_ptr": old,
            "distances_ptr": lists.distances,
            "keys_ptr": keys,
            "ids_ptr": ids,
            "first": first,
        },
        constants=_shape(form.rows.shape[1]) | constants,
        warps=WARPS,
        registers=REGISTERS,
    )


def finish(points: Any, lists: Lists, k: int) -> Neighbors:
    """The first k of all that is listed, by exact values."""
    import torch

    from tonari.core.neighbors import Neighbors
    from tonari.exact.cuda.refine import refine_groups
    from tonari.nn_descent.entries import ID

    ids = torch.where(lists.entries < 0, -1, lists.entries & ID)
    return Neighbors(*refine_groups(points, points, ids, k, metric="euclidean", group=1, double=False))


def _shape(width: int) -> dict[str, int]:
    return {"D": width, "STEP": 64 if width % 64 == 0 else 32}


def _bits(*names: str) -> dict[str, int]:
    from tonari.nn_descent import entries as lists

    return {name: getattr(lists, name) for name in names}


def _rows_of_a_program(tensor: Any) -> int:
    """One on a card; more where Triton's interpreter takes its time for each program."""
    return 1 if tensor.is_cuda else 16

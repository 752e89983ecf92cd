"""Updates of neighbour lists that tonari does not have; they use its samples, matching and locks, and need torch.

- ``locks``, of the paper and of tonari: inserts the nearest pair of each batch; one spinlock for 32 entries of a list.
- ``r2``, of the paper's ablation (section 6.2): inserts the nearest pair of each batch; one spinlock for each list.
- ``r1``, of the same ablation: merges all matched pairs into the lists; one spinlock for each list.
- ``proposals``: sorts the nearest pairs of all batches by target, and merges them by rank into lists of one segment.
  Reverse samples are also chosen by rank (tonari's ``reverse_of``). Nothing is locked; all runs make the same graph.
"""

from __future__ import annotations

from typing import Any

import torch

from tonari.cuda.launch import launch
from tonari.nn_descent.cuda.form import Form
from tonari.nn_descent.cuda.rounds import reverse_of
from tonari.nn_descent.entries import ID, NEW
from tonari.nn_descent.papers.cuda.gnnd import Lists, Spinlocks, rows_of_a_program, shape_of

from .everything_kernels import everything_kernel, tiles_kernel
from .merge_kernel import merge_kernel

# number of rows whose sampled distances are in memory at the same time: 12 (2p)² bytes for each row
TILES_BLOCK = 1 << 12
CHUNK = 32  # number of proposals per row that are merged in one step
WARPS = 4  # number of warps of a program that matches samples; a program that takes locks has one warp


class OneLock(Spinlocks):
    """An update with one spinlock for each whole list."""

    def __init__(self, n: int, list_size: int, device: Any) -> None:
        super().__init__(n, list_size, device, list_size)


class Everything(OneLock):
    """The update r1: all matched pairs are inserted into the lists."""

    def renew(self, form: Form, lists: Lists, new: Any, old: Any, rows: range, boundary: int | None) -> None:
        """Match the samples of `rows`, and merge all pairs into the lists.

        `boundary`, which merges need, is ignored.
        """
        tile, device = new.shape[1], new.device
        samples = {"new_ptr": new, "old_ptr": old}
        for first in range(rows.start, rows.stop, TILES_BLOCK):
            count = min(TILES_BLOCK, rows.stop - first)
            tiles = torch.empty((count, 3, tile, tile), dtype=torch.float32, device=device)
            rest = {"tiles_ptr": tiles, "first": first}
            arguments = {"rows_ptr": form.rows, "terms_ptr": form.member_terms, **samples, **rest}
            launch(tiles_kernel, count, arguments, constants=shape_of(form) | {"TILE": tile}, warps=WARPS)
            arguments = {**samples, **lists.arguments(), "locks_ptr": self._locks, **rest}
            constants = {"TILE": tile, "SIZE": lists.entries.shape[1], "NEW": NEW, "ID": ID}
            launch(everything_kernel, count * 3 * tile, arguments, constants=constants, warps=1)


class Proposals(OneLock):
    """An update in two phases: all proposals are written and sorted before any list changes."""

    def reverse(self, samples: Any, room: int) -> Any:
        """Return, for each point, up to `room` rows that sample it; rows that list it at the best rank come first."""
        return reverse_of(samples, samples.shape[1], room)

    def insert(self, lists: Lists, keys: Any, ids: Any) -> None:
        """Merge proposals into the lists: `keys` and `ids`, tensors of equal shape.

        A negative key means no proposal.
        """
        proposed = (keys.view(-1) >= 0).nonzero()[:, 0]
        keys, order = keys.view(-1)[proposed].sort()
        ids = ids.view(-1)[proposed[order]]
        n, size = lists.entries.shape
        firsts = torch.searchsorted(keys, torch.arange(n + 1, device=keys.device) << 32)
        rows = rows_of_a_program(keys.device)
        arguments = {"keys_ptr": keys, "ids_ptr": ids, "firsts_ptr": firsts, **lists.arguments(), "n": n}
        constants = {"SIZE": size, "CHUNK": CHUNK, "ROWS": rows, "NEW": NEW, "ID": ID}
        launch(merge_kernel, -(-n // rows), arguments, constants=constants, warps=1)


UPDATES: dict[str, type[Spinlocks]] = {"locks": Spinlocks, "proposals": Proposals, "r2": OneLock, "r1": Everything}

"""tonari plan: the plans of the library, overrides, and refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tests.helpers.devices import needs_torch
from tonari import io
from tonari.api.planning import plan as planning
from tonari.cuda import memory as device_memory
from tonari.methods.registry import NAMES, overrides_of

N, M, D, K = 300, 20, 8, 5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    io.write(tmp_path / "queries.npy", checks.gaussian(M, D, seed=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_plan_is_that_of_the_library(folder: Path) -> None:
    graph = planning.plan(N, N, D, K, threads=2)
    told = tonari.explain(None, (N, D), K, threads=2)
    assert run("plan", "points.fbin", "-k", str(K), "--threads", "2").stdout == f"{graph}\n\n{told}\n"
    facts = as_json("plan", "points.fbin", "-k", str(K), "--queries", "7", "--metric", "l1", "--memory", "1GB")
    given: dict[str, Any] = {"metric": "l1", "memory": "1GB"}
    search, told = planning.plan(N, 7, D, K, **given), tonari.explain((7, D), (N, D), K, **given)
    assert facts == json.loads(json.dumps(search.as_dict() | {"auto": told.as_dict()}))


def test_plan_tells_every_method(folder: Path) -> None:
    told = as_json("plan", "points.fbin", "-k", "3", "--recall", "0.9", "--method", "nn-descent")["auto"]
    assert [made["method"] for made in told["candidates"]] == ["exact", "kdtree", "nn-descent", "bits", "missing"]
    assert all(made["seconds"] > 0 and made["nbytes"] > 0 for made in told["candidates"][:3])
    assert "hamming" in told["candidates"][3]["why_not"]
    told = as_json("plan", "points.fbin", "-k", "3", "--queries", "2", "--metric", "cosine")["auto"]
    assert (told["method"], told["reason"]) == ("exact", "brute force ends before a tree would be built")
    whys = {made["method"]: made["why_not"] for made in told["candidates"]}
    assert whys["exact"] == ""
    assert "not cosine" in whys["kdtree"]
    assert "builds a graph" in whys["nn-descent"]


def _set(*settings: str, also: tuple[str, ...] = ()) -> dict[str, Any]:
    return as_json("plan", "points.fbin", "-k", "3", *also, *(part for one in settings for part in ("--set", one)))


def test_plan_takes_overrides(folder: Path) -> None:
    facts = _set("precisions=float32", "isa=generic", "resident=no")
    assert (facts["precisions"], facts["isa"], facts["resident"]) == (["float32"], "generic", False)
    assert _set("adaptive=yes")["adaptive"] is True
    assert _set("adaptive=false")["adaptive"] is False
    facts = _set("query_block=9", "point_chunk=192", " capacity = 5000 ")
    assert (facts["query_block"], facts["point_chunk"], facts["capacity"]) == (9, 192, 5000)
    facts = _set("point_splits=1", "sample_stride=4", "sample_rank=11")
    assert (facts["point_splits"], facts["sample_stride"], facts["sample_rank"]) == (1, 4, 11)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("leaf", "'leaf': expected name=value, such as isa=…"),
        ("capacity=", "'capacity=': expected name=value"),
        ("capacty=5", "'capacty' cannot be set; these can be: active_rows, adaptive, capacity, "),
        ("capacty=5", "Did you mean 'capacity'?"),
        ("capacity=5.5", "capacity=5.5: expected a whole number of at least 1"),
        ("capacity=0", "capacity must be a whole number of at least 1, got 0"),
        ("resident=maybe", "resident=maybe: expected yes or no"),
    ],
)
def test_a_setting_that_cannot_be(folder: Path, setting: str, message: str) -> None:
    assert message in refused("plan", "points.fbin", "-k", "1", "--set", setting, code=1)


def test_help_lists_what_can_be_set() -> None:
    told = run("plan", "--help").stdout
    for name in NAMES:
        for device in ("cpu", "cuda"):
            assert f"{name} on {device}:" in told
            for field, known in overrides_of(name, device).items():
                assert re.search(rf"^ +{field} +{re.escape(known.meaning)}$", told, re.MULTILINE), field


def test_plan_refuses_what_the_verbs_would(folder: Path) -> None:
    assert f"the largest k is {N - 1}" in refused("plan", "points.fbin", "-k", str(N), code=1)
    assert as_json("plan", "points.fbin", "-k", str(N), "--queries", "1")["k"] == N
    assert "precisions=('int3',): expected" in refused(
        "plan", "points.fbin", "-k", "1", "--set", "precisions=int3", code=1
    )
    np.save("whole.npy", np.ones((9, 2), np.int32))
    assert "int32 is not supported" in refused("plan", "whole.npy", "-k", "1", code=1)


@needs_torch
def test_plan_of_a_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tonari.inputs, "devices_for", lambda device: ("cuda:0",))
    monkeypatch.setattr(device_memory, "free_memory", lambda devices: 10**10)
    command = ("plan", "points.fbin", "-k", "3", "--device", "cuda")
    made = planning.plan(N, N, D, 3, self_join=True, device="cuda")
    assert run(*command).stdout.startswith(f"{made}\n\n")
    facts = _set("group=16", "width=5", "query_batch=9", "precisions=float16,values", also=("--device", "cuda"))
    assert (facts["group"], facts["width"], facts["query_batch"]) == (16, 5, 9)
    assert facts["precisions"] == ["float16", "values"]
    facts = _set("route=streamed", "query_slab=100", "point_slab=128", also=("--device", "cuda"))
    assert (facts["route"], facts["query_slab"], facts["point_slab"]) == ("streamed", 100, 128)
    named = refused(*command, "--set", "isa=avx2", code=1)
    assert "'isa' cannot be set; these can be: form_dim, group, point_slab, precisions" in named
    assert "leave threads out" in refused(*command, "--threads", "2", code=1)

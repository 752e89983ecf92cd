"""What a process is told to compile: noted launches as bytes. Triton's functions go by the names of their modules."""

from __future__ import annotations

import importlib
import io
import pickle
from dataclasses import dataclass
from typing import Any

from tonari.cuda.rehearsal import Call


@dataclass(frozen=True)
class Orders:
    """What to compile.

    Attributes
    ----------
    calls : list of bytes
        Each as from :func:`dump_call`.
    target : tuple
        The fields of Triton's GPUTarget.
    processes : int
        Most processes at once.
    """

    calls: list[bytes]
    target: tuple[Any, ...]
    processes: int


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        if hasattr(obj, "arg_names") and hasattr(obj, "fn"):  # a JITFunction of Triton or of Gluon
            return obj.fn.__module__, obj.fn.__qualname__
        return None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> Any:
        module, name = pid
        return getattr(importlib.import_module(module), name)


def dump_call(call: Call) -> bytes:
    """Return a call as bytes, without the key that only its own process knows."""
    written = io.BytesIO()
    fields = call.kernel, dict(call.arguments), dict(call.constants), dict(call.options)
    _Pickler(written).dump(fields)
    return written.getvalue()


def load_call(written: bytes) -> Call:
    """Return the call, with the kernel of this process."""
    kernel, arguments, constants, options = _Unpickler(io.BytesIO(written)).load()
    return Call(kernel, arguments, constants, options, ())

"""The argument `device`, and the choice of a search's devices from this argument and from the devices of the arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tonari.inputs.arrays.kinds import kind_of, place_of

# A parsed argument: "auto", "cpu", "cuda" (any CUDA device), "cuda:all", or a tuple of devices such as "cuda:1".
Wish: TypeAlias = str | tuple[str, ...]

_EXPECTED = 'expected "auto", "cpu", "cuda", a device such as "cuda:1", a list of these, or "cuda:all"'


def devices_for(device: Any, **given: Any) -> tuple[str, ...]:
    """Return the CUDA devices on which a call with these arrays runs; an empty tuple for the CPU.

    Parameters
    ----------
    device : str or list of str
        "auto": the device of the arrays. "cpu": the CPU. "cuda": the device of the arrays, or torch's current device
        for arrays in host memory, which are then copied. "cuda:1": this device. ["cuda:0", "cuda:1"]: these devices.
        "cuda:all": all devices.
    **given
        The arrays, by the names that messages use for them.

    Raises
    ------
    ValueError
        `device` is invalid, this machine lacks the device, or the arrays are on another one.
    ImportError
        torch or Triton is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from tonari.inputs import devices_for
    >>> devices_for("auto", points=np.zeros((3, 2)))
    ()
    >>> devices_for("gpu")
    Traceback (most recent call last):
    ValueError: device='gpu': expected "auto", "cpu", "cuda", a device such as "cuda:1", a list of these, or "cuda:all"
    """
    wish = parse_device(device)
    places = {name: place_of(x, name) for name, x in given.items()}
    on_cuda = {name: place for name, place in places.items() if place is not None}
    if wish == "cpu":
        for name, place in on_cuda.items():
            raise ValueError(f'{name}: is on {place}, but device="cpu"; copy it to host memory, or leave device out')
        return ()
    if wish == "auto":
        if not on_cuda:
            return ()
        _agree(places)
    else:
        _agree(on_cuda)
    torch = _torch(f"device={device!r}" if wish != "auto" else f"{next(iter(on_cuda))} on CUDA")
    if on_cuda and wish in ("auto", "cuda"):
        return (next(iter(on_cuda.values())),)
    chosen = _present(torch, wish, device)
    for name, place in on_cuda.items():
        if place not in chosen:
            raise ValueError(
                f"{name}: is on {place}, but device={device!r}; move it with {_move(given[name], chosen[0])}, or leave "
                "device out"
            )
    return chosen


def parse_device(device: Any) -> Wish:
    """Check the form of the argument `device`, and return it normalised; the machine need not have the device.

    >>> from tonari.inputs import parse_device
    >>> parse_device("cuda"), parse_device("cuda:1"), parse_device(["cuda:0", "cuda:1"])
    ('cuda', ('cuda:1',), ('cuda:0', 'cuda:1'))
    """
    if isinstance(device, list | tuple):
        names = tuple(str(one) for one in device)
        for name in names:
            if not re.fullmatch(r"cuda:\d+", name):
                raise ValueError(f'device={device!r}: expected devices such as "cuda:0" in the list, got {name!r}')
        if not names or len(set(names)) != len(names):
            raise ValueError(f"device={device!r}: expected at least one device, and each of them once")
        return names
    if isinstance(device, str) or type(device).__module__ == "torch":  # str(device) of torch has the form "cuda:0"
        name = str(device)
        if name in ("auto", "cpu", "cuda", "cuda:all"):
            return name
        if re.fullmatch(r"cuda:\d+", name):
            return (name,)
    raise ValueError(f"device={device!r}: {_EXPECTED}")


def _agree(places: Mapping[str, str | None]) -> None:
    """Raise ValueError if arrays are on different devices."""
    if len(set(places.values())) > 1:
        where = " and ".join(f"{name} in host memory" if p is None else f"{name} on {p}" for name, p in places.items())
        target = next(place for place in places.values() if place is not None)
        fix = f'pass device="{target}"' if None in places.values() else f'move one with .to("{target}")'
        raise ValueError(f"{where}, expected all on the same device; {fix}")


def _move(x: Any, target: str) -> str:
    return f'.to("{target}")' if kind_of(x) == "torch" else f"its library to {target}"


def _torch(why: str) -> Any:
    """Import torch and Triton and return torch; an ImportError says how to install them."""
    try:
        import torch
        import triton  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{why}: searching there needs torch and Triton: pip install 'tonari[gpu]'") from error
    return torch


def _present(torch: Any, wish: Wish, device: Any) -> tuple[str, ...]:
    """Return the names of the requested devices; raise ValueError if this machine lacks one."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    present = tuple(f"cuda:{number}" for number in range(count))
    if not present:
        raise ValueError(f'device={device!r}: this machine has no CUDA device that torch can use; use device="cpu"')
    if wish == "cuda":
        return (present[torch.cuda.current_device()],)
    if wish == "cuda:all":
        return present
    _refuse_absent((name for name in wish if name not in present), present, device)
    return tuple(wish)


def _refuse_absent(absent: Iterable[str], present: tuple[str, ...], device: Any) -> None:
    for name in absent:
        raise ValueError(f"device={device!r}: this machine has no {name}, only {', '.join(present)}")

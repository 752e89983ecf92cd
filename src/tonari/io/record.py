"""Checked reading of call records (:class:`tonari.core.trail.Record`) that files store as JSON."""

from __future__ import annotations

from typing import Any

from tonari.core.plan import WrittenPlan
from tonari.core.trail import Attempt, Choice, Record
from tonari.io import schema
from tonari.io.schema import Test


def _plain(value: Any) -> bool:
    """Return whether a value is null, a string, a bool or a number, as most fields of a plan are."""
    return value is None or isinstance(value, str | bool | int | float)


def _fields(plan: Any) -> bool:
    """Return whether a JSON object can be a plan: a mapping to plain values or lists; bytes and seconds are numbers."""
    if not isinstance(plan, dict):
        return False
    for name, value in plan.items():
        test = schema.whole(0) if name.endswith("_bytes") else schema.real(0) if name == "seconds" else _plain
        several = test is _plain and isinstance(value, list | tuple)
        if not (all(map(_plain, value)) if several else test(value)):
            return False
    return True


_RECORD: dict[str, Test] = {
    **dict.fromkeys(("title", "method", "reason"), schema.text),
    "rows": schema.whole(0),
    "timed": schema.flag,
    "seconds": schema.real(0),
    "plan": schema.none_or(_fields),
    "steps": schema.list_of(lambda value: isinstance(value, dict)),
}
_CHOICE: dict[str, Test] = {"what": schema.text, "why": schema.text}
_ATTEMPT: dict[str, Test] = {
    "name": schema.text,
    "rows": schema.whole(0),
    "proved": schema.none_or(schema.whole(0)),
    "seconds": schema.none_or(schema.real(0)),
    "note": schema.text,
}


def read_record(facts: Any) -> Record:
    """Rebuild a record from the result of :meth:`Record.as_dict`.

    Its plan has all fields of the original, but no methods.

    Raises
    ------
    ValueError
        A field is missing or unknown, or its value is of the wrong type.

    Examples
    --------
    >>> from tonari.core.trail import recording
    >>> with recording("search", 7) as record:
    ...     record.tried("int8", 7, 7, 0.002)
    >>> read_record(record.as_dict()) == record
    False
    >>> str(read_record(record.as_dict())) == str(record)
    True
    """
    schema.check(facts, _RECORD, "record")
    fields = dict(facts)
    plan, steps = fields.pop("plan"), fields.pop("steps")
    if plan is not None:
        plan = WrittenPlan({name: tuple(value) if isinstance(value, list) else value for name, value in plan.items()})
    return Record(**fields, plan=plan, steps=[_step(step) for step in steps])


def _step(facts: dict[str, Any]) -> Choice | Attempt | Record:
    if "title" in facts:
        return read_record(facts)
    if "what" in facts:
        schema.check(facts, _CHOICE, "choice")
        return Choice(**facts)
    schema.check(facts, _ATTEMPT, "attempt")
    return Attempt(**facts)

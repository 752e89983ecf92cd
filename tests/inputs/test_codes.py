"""The argument `codes`."""

from __future__ import annotations

from typing import Any

import pytest

from tonari.inputs.codes import CODES, check_codes


def test_names_of_codes() -> None:
    assert [check_codes(name) for name in CODES] == ["auto", "float16", "int8", "int4"]


@pytest.mark.parametrize("other", ["bits", "", None, 8, True, ["int8"]])
def test_others_are_refused(other: Any) -> None:
    with pytest.raises(ValueError, match=r"codes=.*: expected one of 'auto', 'float16', 'int8', 'int4'"):
        check_codes(other)

"""Checks of the callers' arguments, which happen once and only here, so that other code can rely on them.

    arguments.py     k, threads, memory, output paths
    devices.py       the argument `device`
    codes.py         the argument `codes` of an Index
    overrides.py     the fields of a plan that callers may set
    arrays/          arrays of every library and dtype, checked and converted to rows

Every error message names the argument, its value, the expectation and the nearest fix. Other packages import these
functions from ``tonari.inputs``.
"""

from tonari.inputs.arguments import (
    check_count,
    check_flag,
    check_k,
    check_output_path,
    check_progress,
    check_threads,
    parse_memory,
)
from tonari.inputs.arrays.bfloat16 import BFLOAT16, as_floats, dtype_of, held
from tonari.inputs.arrays.bits import as_bits, as_device_bits, bool_columns, same_bits
from tonari.inputs.arrays.copies import after_copies, copied_bytes
from tonari.inputs.arrays.device_rows import (
    Side,
    as_device_rows,
    as_tensor,
    hand_back,
    ids_for,
    rows_at,
    side_of,
    to_host,
)
from tonari.inputs.arrays.gradients import warn_of_dropped, without_gradients
from tonari.inputs.arrays.kinds import dtype_name, kind_of, like, name_of_dtype, place_of, refuse_masked
from tonari.inputs.arrays.rows import ACCEPTED, ACCEPTED_NAMES, as_rows, dtype_of_rows, same_width
from tonari.inputs.arrays.selected import SELECTED, as_lengths, as_values
from tonari.inputs.arrays.unchanged import Unchanged, can_change, shares_memory
from tonari.inputs.arrays.values import (
    LARGEST_FLOAT64,
    check_flags,
    check_gaps,
    check_held_values,
    check_nonnegative,
    check_values,
)
from tonari.inputs.codes import check_codes
from tonari.inputs.devices import devices_for, parse_device

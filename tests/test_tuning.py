"""Tuned numbers are in the tuning.py of their package; elsewhere there are only numbers of formats and bounds."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tonari"

# Numbers that follow from a format, a kernel, a proof, a paper, another library or the memory of something: changing
# one would change more than time. Also the numbers of costs/rates.py, which are measured.
FORMATS = {
    "_startup.py": "INTERRUPTED",
    "api/index/files/coded.py": "FORMAT VERSION _COLUMNS",
    "api/index/files/dense.py": "FORMAT VERSION",
    "api/index/files/header.py": "ALIGNED _PREFIX _LONGEST",
    "api/index/segments/state.py": "_ENTRY",
    "bits/cuda/listed.py": "_LISTED _BYTES _WARPS",
    "bits/cuda/memory.py": "STEP TILE POINT_TILE SMALL_CHANGE _PAIR _KEPT",
    "bits/cuda/unpack.py": "_ROWS _BYTES _WARPS",
    "bits/cuda/values.py": "ROWS COLUMNS STAGES WARPS",
    "bits/plan.py": "LANES WORD MOST_BYTES MOST_POINTS",
    "cli/commands/recall.py": "_ALIKE",
    "compat/astropy/arguments.py": "_POLE _TURN",
    "compat/astropy/matching.py": "MARGIN",
    "compat/faiss/arguments.py": "METRIC_INNER_PRODUCT METRIC_L2 METRIC_L1 METRIC_Linf METRIC_Canberra",
    "compat/scipy/arguments.py": "_LEAST_P",
    "compat/scipy/periodic.py": "_ROUNDING",
    "core/units.py": "MIB",
    "costs/formulas.py": "_OWN_CACHE _SHARED_CACHE TOP_LEVELS",
    "costs/rates.py": (
        "_XEON SCREEN_START SCREEN_START_UNPACKED _BUILD SHARED READ_RATE LOOK_BYTE PRODUCTS MULTIPLY "
        "SURVIVOR SURVIVOR_VALUE"
    ),
    "core/rows/allowed.py": "COPIED_POINT",
    "inputs/arrays/copies.py": "_FLOAT32 _LIST_NUMBER",
    "cuda/compiling/effort.py": "LOOPS_FROM UNROLLED",
    "cuda/matrix_units.py": "ROWS WIDTH UNIT _SHORT _FACTOR _LEAST_EMULATED_BITS",
    "debug.py": "N D K _SECONDS",
    "estimators/predictions/blocks.py": "_ENTRY_BYTES",
    "estimators/dbscan.py": "_ROW_BYTES",
    "estimators/local_outlier_factor.py": "_AUTO_OFFSET _TINY _INCORRECT",
    "estimators/classifiers.py": "_NAMED",
    "estimators/settings.py": "_LEAF_SIZE _MOST_JOBS",
    "estimators/predictions/votes.py": "_ENTRY_BYTES",
    "user_metrics/plan.py": "_COPIES _TEMPORARIES",
    "inputs/arrays/rows.py": "LARGEST_WHOLE",
    "metrics/transforms/row_changes.py": "_EPSILON",
    "metrics/transforms/maps.py": "_ASYMMETRY _ROUNDING",
    "exact/cpu/rows/boxes.py": "PARTS _STEPS",
    "exact/cpu/rows/contraction.py": "_ROUNDING",
    "exact/cpu/rows/copies.py": "_ROW_BYTES",
    "exact/cpu/method.py": "_NUMBER",
    "exact/cpu/passes.py": "_RETRY _RESAMPLE",
    "cuda/host_rows.py": "_PORTABLE _MAPPED _READ_ONLY",
    "exact/cuda/coded_memory.py": "CODED_BYTES",
    "exact/cuda/attempts/retries/nearby.py": "_SLACK _TINY _LARGEST",
    "exact/cuda/attempts/within.py": "MOST_POINTS",
    "exact/cuda/memory.py": "SMALL_CHANGE LEAST_BATCH MEMBER_BYTES MOST_POINTS",
    "exact/cuda/refine/groups.py": "STEP CANDIDATE_BYTES NO_MEMBER",
    "exact/cuda/replay/capture.py": "POOL_BYTES",
    "exact/cuda/replay/few.py": "_NO_FLAGS _ALIGNED",
    "exact/cuda/replay/spread.py": "_NO_FLAGS",
    "exact/cuda/rows/bytes.py": "SHIFTS",
    "exact/cuda/rows/codes.py": "MOST_CODED LARGEST_CODE WIDTHS",
    "exact/cuda/rows/contraction.py": "LARGEST BEYOND",
    "exact/cuda/rows/copies.py": "SORTED_BYTES",
    "exact/cuda/rows/form.py": "ANGULAR_SCALE",
    "exact/cuda/rows/groups.py": "POINT_TILE GROUP_SIZES LEAST_GROUP LISTED",
    "exact/cuda/rows/pack.py": (
        "ELEMENT_BYTES LARGEST_FLOAT16 LARGEST_INT8 LARGEST_FLOAT32 MOST_COLUMNS MOST_INT8_COLUMNS"
    ),
    "exact/cuda/rows/tiles.py": "RESIDENT_BYTES STEP_BYTES",
    "exact/cuda/screens/few.py": "FLAGS CANDIDATES_BYTES",
    "exact/cuda/screens/mirrored.py": "MOST_PARTS",
    "exact/cuda/screens/wide_rows.py": "SHARED OF_PROGRAM RESERVED BESIDE LARGEST LARGEST_MIRRORED",
    "exact/cuda/screens/widths.py": "NEAR_BYTES",
    "exact/memory.py": (
        "SURVIVOR_BYTES METADATA_BYTES JOIN_BLOCK TILE SAMPLE_ROWS CLUSTER_COLUMNS GROUPS_FIT ELEMENT_BYTES "
        "_SMALL_CHANGE _STATE_BYTES _SMALL_BUFFERS _REFINING_BYTES _QUERY_BYTES _ROWS_IN_FORM _STREAM_SIZES "
        "_LEAST_GROUP"
    ),
    "exact/plan.py": "_PAIR_BYTES",
    "exact/planning/blocks.py": "LOOKED LOOKED_FIRST _CONTRACTED",
    "exact/precisions.py": "_INT8_DIMENSIONS",
    "filters/listed.py": "PAIR TABLE_PAIR LISTED_PAIR ENTRY",
    "graph/files/directory.py": "VERSION BUILDING_VERSION _LONGEST LARGEST_MATRIX",
    "graph/exports/scanpy.py": "_TOLERANCE",
    "graph/exports/weights.py": "_ROUNDS _TOLERANCE _LEAST_SCALE",
    "graph/files/npz.py": "_VERSION",
    "graph/page/charts.py": "WIDTH HEIGHT SHADES _LEFT _RIGHT _TOP _BOTTOM _MAP _EDGE",
    "graph/spectral.py": "_LEAST _SHIFT",
    "inputs/arguments.py": "LARGEST_COUNT _UNITS",
    "inputs/arrays/kinds.py": "_DLPACK_HOST _DLPACK_CUDA",
    "inputs/arrays/values.py": "LARGEST_FLOAT64 NO_ROW",
    "io/_common.py": "MAX_EXPANSION FREE_BYTES",
    "io/tables/columns.py": "_LISTED",
    "io/neighbors/ground_truth.py": "MISSING HEADER_BYTES",
    "io/formats/hdf5.py": "SOFT_LINKS LONGEST_NAME",
    "io/formats/npy.py": "LONGEST_HEADER",
    "io/neighbors/pairs.py": "_HEADER_BYTES",
    "io/formats/vecs.py": "PREFIX",
    "kdtree/cpu/tree.py": "WIDTH BLOCK",
    "kdtree/cuda/build.py": "SAMPLED MOST_SAMPLED LEAST_SAMPLED MOST_STEP_BITS",
    "kdtree/cuda/prepared.py": "LINE",
    "kdtree/cuda/search.py": "_MOST_COLUMNS LISTS",
    "kdtree/cuda/tree.py": "WIDTH BLOCK MOST_LEVELS",
    "kdtree/cuda/within.py": "UNBOUNDED",
    "kdtree/memory.py": "SMALL_CHANGE SMALL_CHANGE_ON_CUDA BUFFERED_ROW_ON_CUDA",
    "kdtree/papers/cuda/buffered.py": "BATCH TILE _NO_LIMIT",
    "kdtree/plan.py": "MOST_K_ON_CUDA MOST_DIMENSIONS_ON_CUDA",
    "kdtree/reference.py": "SAMPLED_FROM SAMPLE_STEP LOOKED_AT",
    "kdtree/traversal.py": "_PAPER_LEAVES_TIMES_BUFFER _LEAST_BUFFER _LEAST_BUFFER_ON_CUDA",
    "methods/places/value_range.py": "_PLAIN_LOW _PLAIN_HIGH _LARGE_ELEMENT DIGITS",
    "metrics/definitions.py": "LANES",
    "metrics/recall.py": "SLACK_UNITS _Z95",
    "metrics/transforms/roots.py": "_STEPS _SPLIT _GUESS",
    "metrics/transforms/trigonometry.py": (
        "LARGEST_ANGLE _SIN _COS _ASIN_P _ASIN_Q _HALF_PI_1 _HALF_PI_2 _HALF_PI_2_TAIL _TWO_OVER_PI _HALF_PI "
        "_HALF_PI_LOW _QUARTER_PI _NEAR_ONE"
    ),
    "nn_descent/cpu/short_rows.py": "ROUNDING TINY",
    "nn_descent/cuda/form.py": "STEP SHORT _LARGEST",
    "nn_descent/cuda/clusters.py": "QUERIES CENTRES",
    "nn_descent/cuda/backend.py": "_BLOCK _WORD",
    "nn_descent/cuda/scan.py": "MOST_COMPARED",
    "nn_descent/entries.py": "NEW ID MISSING MIX",
    "nn_descent/planning/intrinsic_dimension.py": "ROWS NEIGHBOURS",
    "nn_descent/memory.py": "_SMALL_CHANGE _SMALL_CHANGE_ON_CUDA _TASK_ROW_BYTES _SORT_BYTES",
    "nn_descent/papers/cuda/gnnd.py": "_PAIRS _WARPS _REGISTERS",
    "nn_descent/planning/planner.py": "RECALL SEED MOST_NEAR_ON_CUDA",
    "nn_descent/reference.py": "_BLOCK",
    "nn_descent/updates.py": "LIST_SIZE SAMPLES SEGMENT MOST_LISTED LEAST_SAMPLES MOST_SAMPLES",
    "nn_descent/driver.py": "_GNND_ROUNDS",
    "select/auto.py": "LARGEST_TIMED _BYTES",
    "select/cpu.py": "_GROUP",
    "select/cuda/dispatch.py": "_NO_ROW",
    "select/cuda/ordering/order.py": "MERGE_BYTES ENTRY_BYTES",
    "select/cuda/ordering/ragged.py": "_LONG_ENTRY",
    "select/cuda/survivors.py": "LARGEST_NETWORK LARGEST_TILE",
    "select/papers/queues.py": "LANES SCRATCH_BYTES",
    "select/papers/quick.py": "TILES SCRATCH_BYTES",
    "shards/build.py": "_BLOCK_BYTES",
    "shards/planning/sizes.py": "MEMBER_BYTES",
    "shards/planning/planner.py": "_LOCKED _CENTRE_BYTES _GAP_BYTES",
    "shards/source.py": "_DIGESTED_RANGES _DIGESTED_ROWS",
    "shards/directory/done.py": "_LONGEST",
    "shards/directory/workspace.py": "_POLYNOMIAL _ONE _BYTE",
    "missing/memory.py": "GROUP _LANES _WORD _QUERY",
    "sparse/memory.py": "BLOCK DENSE_SHARE RARE_SHARE SPARE _QUERY",
    "api/index/files/sparse.py": "FORMAT VERSION",
    "sparse/rows.py": "MOST",
    "spanning/apart.py": "_VALUE_BYTES _LESS _LEAST",
    "spanning/boruvka.py": "_SIZES _ENTRY_BYTES",
    "streams/chunks.py": "LEAST_ROWS",
    "streams/journal.py": "SAMPLED_ROWS LONGEST",
}


def is_number(node: ast.expr | None) -> bool:
    """Return whether a value consists of numbers that are written out."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ast.UnaryOp():
            return is_number(node.operand)
        case ast.BinOp():
            return is_number(node.left) or is_number(node.right)
        case ast.Tuple() | ast.List():
            return any(map(is_number, node.elts))
        case ast.Dict():
            return any(map(is_number, node.values))
    return False


def numbers_of(text: str) -> list[str]:
    """Return the names of the numbers that a module's text defines at its top level."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_number(node.value):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            found += [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]
    return found


def numbers() -> dict[str, list[str]]:
    paths = (path for path in sorted(SOURCE.rglob("*.py")) if path.name != "tuning.py")
    return {path.relative_to(SOURCE).as_posix(): numbers_of(path.read_text(encoding="utf-8")) for path in paths}


def test_numbers_are_found() -> None:
    text = 'A = 1\nB, _C = 2, "x"\nD: int = -(1 << 3)\nE = {"a": 1}\nF = A\nG = (1.5, "y")\nH = True\nI = len("x")\n'
    assert numbers_of(text) == ["A", "B", "_C", "D", "E", "G"]


def test_judgments_are_in_tuning() -> None:
    found = {path: names for path, names in numbers().items() if names}
    allowed = {path: names.split() for path, names in FORMATS.items()}
    unknown = {path: sorted(set(names) - set(allowed.get(path, ()))) for path, names in found.items()}
    assert {path: names for path, names in unknown.items() if names} == {}, (
        "a judgment goes to tuning.py of its room, with the case that measures it; a format into FORMATS"
    )
    gone = {path: sorted(set(names) - set(found.get(path, ()))) for path, names in allowed.items()}
    assert {path: names for path, names in gone.items() if names} == {}, "take them out of FORMATS"

"""Deliberate faults: one changed line each, as a tired programmer makes them. The tests have to find nearly all.

They are spread over the rooms by risk, and only in code that every machine with AVX2 runs, Triton's interpreter
included. Each changes an answer, an error, an exit status or what is on the disk; none only the time that it takes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A text that occurs once in a file, and what replaces it.

    Attributes
    ----------
    name : str
        Begins with the room, so that ``--only 'exact-*'`` takes a room's faults.
    file : str
    old, new : str
    why : str
        What is wrong then.
    tests : tuple of str
        Files, or tests as pytest names them, that most likely see it. Default: those of the room.
    """

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...] = ()


_NATIVE = (
    Fault(
        "exact-scale-not-squared",
        "native/exact/bounds.cpp",
        ": worst * scale * scale;",
        ": worst * scale;",
        "the threshold of squared distances is scaled like one of distances",
        ("tests/exact/cpu/test_properties.py::test_scaling_by_a_power_of_two",),
    ),
    Fault(
        "exact-error-of-centre",
        "native/exact/pack.cpp",
        "if (centre > 0) query += static_cast<double>(form.d + 16) * 0x1p-51 * (norms.exact + 2 * centre);",
        "",
        "the bound forgets what exact products of uncentred rows lose to cancellation",
        ("tests/exact/cpu/test_values.py::test_products_that_cancel_beside_a_centre",),
    ),
    Fault(
        "exact-error-of-sums",
        "native/exact/kernels.cpp",
        "Precision::int8 ? 0.0 : static_cast<double>(d)",
        "Precision::int8 ? 0.0 : static_cast<double>(d > 0)",
        "the bound forgets that float32 sums round once per term",
        ("tests/exact/cpu/test_values.py::test_sums_of_bytes_beyond_int32",),
    ),
    Fault(
        "exact-error-of-points",
        "native/exact/pack.cpp",
        "query = 2 * norms.difference;",
        "query = norms.difference;",
        "half the rounding error of packed points is dropped",
        ("tests/exact/cpu/test_values.py::test_one_dimension_and_very_many",),
    ),
    Fault(
        "exact-padding-passes",
        "native/exact/pack.cpp",
        "low_.assign(padded, kInfinity);",
        "low_.assign(padded, 0.0f);",
        "points of the last group that do not exist pass the screen",
        ("tests/exact/cpu/test_values.py::test_numbers_of_points_around_every_tile",),
    ),
    Fault(
        "exact-self-not-counted",
        "native/exact/row_states.cpp",
        "wanted_(spec.k + (spec.self_ids != nullptr ? 1 : 0)),",
        "wanted_(spec.k),",
        "the point itself takes one of the k places while survivors are condensed",
        ("tests/exact/cpu/test_schedule.py::test_graphs",),
    ),
    Fault(
        "exact-self-of-other-block",
        "native/exact/row_states.cpp",
        "spec_.self_ids[begin_ + r] : -1;",
        "spec_.self_ids[r] : -1;",
        "self is excluded only in the first block of queries",
        ("tests/exact/cpu/test_schedule.py::test_graphs",),
    ),
    Fault(
        "exact-sample-trusted",
        "native/exact/row_states.cpp",
        "return bounds_.threshold_from_value(bounds_.key(ranked.back().key), row.shift) <= row.sampled;",
        "return true;",
        "a threshold from a sample that misled is believed",
        ("tests/exact/cpu/test_schedule.py::test_a_sample_flooded_with_doubtful_points",),
    ),
    Fault(
        "exact-absorb-forgets",
        "native/exact/row_states.cpp",
        "scratch.ranked.insert(scratch.ranked.end(), more.settled.begin(), more.settled.end());",
        "",
        "settled neighbours of the other half of the points are lost",
        ("tests/exact/cpu/test_schedule.py::test_schedules",),
    ),
    Fault(
        "exact-join-slice",
        "native/exact/self_join.cpp",
        "= view.low[id - packed.base()];",
        "= view.low[id];",
        "terms of a later slice are read from the wrong place",
        (
            "tests/exact/cpu/test_schedule.py::test_a_product_of_two_rows_serves_both",
            "tests/exact/cpu/test_schedule.py::test_graphs",
        ),
    ),
    Fault(
        "exact-screen-second-point",
        "native/exact/screen_tile.hpp",
        "for (int p = 1; p < POINTS; ++p) least[v] = min(least[v], score[p][v]);",
        "for (int p = 2; p < POINTS; ++p) least[v] = min(least[v], score[p][v]);",
        "off by one: the second point of a group is not in its minimum",
        ("tests/exact/cpu/test_values.py::test_numbers_of_points_around_every_tile",),
    ),
    Fault(
        "exact-refine-below-zero",
        "native/exact/refine_tile.hpp",
        "return distance < 0 ? 0.0 : distance > 2 ? 2.0 : distance;",
        "return distance > 2 ? 2.0 : distance;",
        "a cosine distance can be slightly negative",
        ("tests/exact/cpu/test_values.py::test_graph_excludes_self_by_identity",),
    ),
    Fault(
        "exact-constant-row",
        "native/exact/form.cpp",
        "row[i] = constant ? 0.0 : row[i] - mean;",
        "row[i] = row[i] - mean;",
        "a constant row keeps the rounding error of its mean, which correlation then divides by itself",
        ("tests/exact/cpu/test_values.py::test_rows_of_one_value_have_no_direction",),
    ),
    Fault(
        "inputs-nan-in-last-column",
        "native/core/rows.cpp",
        "for (; c < rows.d; ++c) sums[0] += row[c] * 0.0;",
        "for (; c + 1 < rows.d; ++c) sums[0] += row[c] * 0.0;",
        "NaN in the last column is not noticed",
        ("tests/native/test_native.py::test_first_row_that_is_not_finite",),
    ),
    Fault(
        "kdtree-next-float",
        "native/kdtree/reach.hpp",
        "std::min(word, largest) + 1)",
        "std::min(word, largest))",
        "a point whose distance rounds to that of the k-th is skipped, also with a smaller index",
        ("tests/kdtree/cpu/test_search.py::test_neighbours_at_the_very_threshold",),
    ),
    Fault(
        "kdtree-lane-order",
        "native/kdtree/search_tile.hpp",
        "auto& sum = sums[i % kLanes];",
        "auto& sum = sums[(i + 1) % kLanes];",
        "sums of more than 16 columns are added in another order",
        ("tests/kdtree/cpu/test_search.py::test_every_number_of_dimensions",),
    ),
    Fault(
        "kdtree-one-tie-too-many",
        "native/kdtree/build_cut.hpp",
        "keys[i] == value && equal > 0;",
        "keys[i] == value && equal >= 0;",
        "one row too many goes left if several equal the median",
        ("tests/kdtree/cpu/test_build.py::test_equals_the_reference_and_keeps_the_promises",),
    ),
    Fault(
        "kdtree-tie-goes-left",
        "native/kdtree/build_top.cpp",
        "((of_row == value) & (row < tie))",
        "((of_row == value) & (row <= tie))",
        "off by one: the first of the equal rows that belong to the right goes left",
        ("tests/kdtree/cpu/test_build.py::test_many_points",),
    ),
    Fault(
        "descent-boundary",
        "native/nn_descent/others.hpp",
        "if (ACROSS && (id < task_.boundary) == below_) return;",
        "if (ACROSS && (id <= task_.boundary) == below_) return;",
        "off by one: the first point of the second side counts as one of the first",
        ("tests/nn_descent/cpu/test_rounds.py::test_across_a_boundary",),
    ),
    Fault(
        "descent-reverse-overflow",
        "native/nn_descent/reverse.cpp",
        "task.counts[v] >= task.reverse) continue;",
        "task.counts[v] > task.reverse) continue;",
        "one more than there is room for, which is the first of the next row",
        ("tests/nn_descent/cpu/test_rounds.py::test_reverse_lists",),
    ),
    Fault(
        "descent-self-listed",
        "native/nn_descent/score_block.cpp",
        "written += places[written] != own;",
        "++written;",
        "a point is in its own list at the start",
        ("tests/nn_descent/cpu/test_cluster_blocks.py::test_a_search_through_clusters",),
    ),
    Fault(
        "select-nan-forgotten",
        "native/select/keys.hpp",
        "saw_nan_ |= greatest > INFINITE;",
        "saw_nan_ = greatest > INFINITE;",
        "NaN is forgotten when the next part of the row has none",
        ("tests/select/cpu/test_rows.py::test_first_row_with_nan",),
    ),
    Fault(
        "select-no-second-read",
        "native/select/threshold.hpp",
        "if (buffer.count < wanted) read_row(",
        "if (buffer.count == 0) read_row(",
        "a threshold that let too few values through is not corrected",
        ("tests/select/cpu/test_rows.py::test_threshold_that_was_too_low",),
    ),
    Fault(
        "bind-self-ids-unchecked",
        "native/bind/bind_engine.cpp",
        'check_shape("self_ids", self_ids, {points.n});',
        'check_shape("self_ids", self_ids, {static_cast<std::int64_t>(self_ids.shape(0))});',
        "a join reads beyond the end of a short array",
        ("tests/native/test_bindings.py::test_arrays_that_do_not_fit_are_refused",),
    ),
)

_CUDA = (
    Fault(
        "exact-cuda-round-up",
        "src/tonari/exact/cuda/kernels/pack.py",
        "return tl.where(rounded.to(tl.float64) < x, above, rounded)",
        "return rounded",
        "bounds are rounded to nearest instead of up",
        ("tests/exact/cuda/test_pack.py::test_bounds_bound",),
    ),
    Fault(
        "exact-cuda-error-of-points",
        "src/tonari/exact/cuda/kernels/pack.py",
        "e1 = 2 * difference",
        "e1 = difference",
        "half the rounding error of packed points is dropped",
        ("tests/exact/cuda/test_pack.py::test_bounds_bound",),
    ),
    Fault(
        "exact-cuda-padding",
        "src/tonari/exact/cuda/kernels/pack.py",
        "low = tl.where(packed, round_down(term - own), tl.where(present, -_HUGE, _INFINITY))",
        "low = tl.where(packed, round_down(term - own), -_HUGE)",
        "points beyond the end have the lowest score instead of the highest",
        ("tests/exact/cuda/test_pack.py::test_bounds_bound",),
    ),
    Fault(
        "exact-cuda-certify-equal",
        "src/tonari/exact/cuda/kernels/certify.py",
        "next_minimum > tl.maximum(threshold, _HUGE)",
        "next_minimum >= tl.maximum(threshold, _HUGE)",
        "a row is proved although a point beyond range was not refined",
        ("tests/exact/cuda/test_certify.py::test_thresholds_are_those_of_the_cpu",),
    ),
    Fault(
        "exact-cuda-certify-output",
        "src/tonari/exact/cuda/kernels/certify.py",
        "tl.abs(value) * (evaluation + 2.0**-22)",
        "tl.abs(value) * evaluation",
        "the certificate forgets that values are returned as float32",
        ("tests/exact/cuda/test_certify.py::test_thresholds_are_those_of_the_cpu",),
    ),
    Fault(
        "exact-cuda-refine-tail",
        "src/tonari/exact/cuda/kernels/refine.py",
        "x = load_lanes(row_ptrs, at, d, present, UNIT, True)",
        "x = load_lanes(row_ptrs, at, d, present, UNIT, False)",
        "the last step reads columns of the next row",
        ("tests/exact/cuda/test_refine.py::test_members_of_groups",),
    ),
    Fault(
        "exact-cuda-slice-ids",
        "src/tonari/exact/cuda/kernels/dense.py",
        "ids = first_id + point",
        "ids = point",
        "points of a later slice have the numbers of the first",
        ("tests/exact/cuda/test_refine.py::test_slices",),
    ),
    Fault(
        "exact-cuda-cut-list",
        "src/tonari/exact/cuda/kernels/candidate_groups.py",
        'tl.where(cut, -float("inf"), tl.minimum(following, squeezed))',
        "tl.minimum(following, squeezed)",
        "a list that was cut off is taken for whole",
        ("tests/exact/cuda/test_candidate_groups.py::test_lowest_groups_are_taken_apart",),
    ),
    Fault(
        "exact-cuda-list-overflow",
        "src/tonari/exact/cuda/kernels/record.py",
        "fits = hit & (counts < room)",
        "fits = hit & (counts <= room)",
        "a full segment writes into the next one",
        ("tests/exact/cuda/test_screen.py::test_a_list_that_is_too_short_counts_on",),
    ),
    Fault(
        "exact-cuda-double-ids",
        "src/tonari/exact/cuda/refine.py",
        "torch.where(columns < k, before, columns + (begin - k))",
        "torch.where(columns <= k, before, columns + (begin - k))",
        "off by one: the first point of a slice gets another one's number, in float64",
        ("tests/exact/cuda/test_refine.py::test_slices",),
    ),
    Fault(
        "exact-cuda-query-slab",
        "src/tonari/exact/cuda/routes/streamed.py",
        "place.at(here.start, rows.start)",
        "place.at(here.start, 0)",
        "self is not excluded from the second slab of queries on",
        ("tests/exact/cuda/test_routes.py::test_slabs_of_queries_of_a_graph_leave_themselves_out",),
    ),
    Fault(
        "kdtree-cuda-tie",
        "src/tonari/kdtree/cuda/kernels/search.py",
        "while (value < NOTHING) & ((value < last) | ((value == last) & (number < last_id))):",
        "while (value < NOTHING) & (value < last):",
        "of points that tie for the k-th place the first to be met is kept, not the smallest index",
        (
            "tests/kdtree/cuda/test_kdtree.py::test_hard_rows",
            "tests/kdtree/cuda/test_kdtree.py::test_hard_self_joins",
        ),
    ),
    Fault(
        "kdtree-cuda-own",
        "src/tonari/kdtree/cuda/kernels/search.py",
        "own = tl.load(own_ptr + row).to(tl.int32)",
        "own = tl.load(own_ptr + tl.program_id(0)).to(tl.int32)",
        "self is read in the order of the queries, not in that of the programs",
        ("tests/kdtree/cuda/test_kdtree.py::test_hard_self_joins",),
    ),
    Fault(
        "descent-cuda-reverse-overflow",
        "src/tonari/nn_descent/cuda/kernels/reverse.py",
        "present = present & (place < room)",
        "present = present & (place <= room)",
        "one more than there is room for, which is the first of the next row",
        ("tests/nn_descent/cuda/test_rounds.py::test_reverse_neighbours_come_by_rank_and_number",),
    ),
    Fault(
        "descent-cuda-boundary",
        "src/tonari/nn_descent/cuda/kernels/candidates.py",
        "kept = kept & ((id < boundary) != (point < boundary))",
        "kept = kept & ((id <= boundary) != (point < boundary))",
        "off by one: the first point of the second side counts as one of the first",
        ("tests/nn_descent/cuda/test_rounds.py::test_rounds_across_a_boundary",),
    ),
    Fault(
        "descent-cuda-centres",
        "src/tonari/nn_descent/cuda/kernels/near.py",
        "key = tl.where(centre_present[None, :], key, _LAST)",
        "key = tl.where(present[:, None], key, _LAST)",
        "the wrong mask: centres that do not exist can be the nearest",
        ("tests/nn_descent/cuda/test_rounds.py::test_the_nearest_centres",),
    ),
    Fault(
        "select-cuda-infinity",
        "src/tonari/select/cuda/kernels/compact.py",
        "if tl.max(magnitude, 0) > INFINITE:",
        "if tl.max(magnitude, 0) >= INFINITE:",
        "infinity is refused as if it were NaN",
        ("tests/select/cuda/test_threshold.py::test_streamed_rows",),
    ),
    Fault(
        "select-cuda-missing-index",
        "src/tonari/select/cuda/kernels/finish.py",
        "tl.store(out_ids_ptr + at, tl.where(present, ids, -1), mask=at < k)",
        "tl.store(out_ids_ptr + at, ids, mask=at < k)",
        "what a short row lacks has the index 2147483647 instead of -1",
        ("tests/select/cuda/test_threshold.py::test_lengths_around_a_tile",),
    ),
)

_PYTHON = (
    Fault(
        "core-order-of-results",
        "src/tonari/core/workers.py",
        "return [results[at] for at in range(len(tasks))]",
        "return list(results.values())",
        "results are in the order in which threads were done",
        ("tests/core/test_workers.py::test_results_are_in_the_order_of_the_items",),
    ),
    Fault(
        "inputs-large-negative",
        "src/tonari/inputs/values.py",
        "max(rows.max(), -rows.min()) > LARGEST_FLOAT64",
        "rows.max() > LARGEST_FLOAT64",
        "values below -1e150 are accepted",
        ("tests/inputs/test_arrays.py::test_names_the_first_row_whose_squares_overflow",),
    ),
    Fault(
        "inputs-unaligned",
        "src/tonari/inputs/rows.py",
        '["C_CONTIGUOUS", "ALIGNED"]',
        '["C_CONTIGUOUS"]',
        "unaligned rows are handed on",
        ("tests/inputs/test_arrays.py::test_other_layouts_give_the_same_rows",),
    ),
    Fault(
        "metrics-recall-of-similarity",
        "src/tonari/metrics/recall.py",
        "found.distances >= last - slack if",
        "found.distances >= last + slack if",
        "the true k-th neighbour does not count as found where larger is nearer",
        (
            "tests/graph/test_recall.py::test_slack_of_negative_similarities",
            "tests/graph/test_recall.py::test_a_true_graph_has_recall_one",
        ),
    ),
    Fault(
        "metrics-recall-of-population",
        "src/tonari/metrics/recall.py",
        "unseen = 1.0 if population is None else 1.0 - rows / population",
        "unseen = 1.0",
        "the interval is not zero although every row was measured",
        ("tests/graph/test_recall.py::test_a_sample_of_all_rows_leaves_no_doubt",),
    ),
    Fault(
        "exact-results-not-counted",
        "src/tonari/exact/memory.py",
        "return packed + self.working_bytes(choice) + self.output_bytes",
        "return packed + self.working_bytes(choice)",
        "a budget is exceeded by the size of the results",
        ("tests/exact/test_plan.py::test_every_budget_is_kept_and_used",),
    ),
    Fault(
        "exact-retries-of-pilot",
        "src/tonari/exact/cpu/search.py",
        "left = left + rows.start if isinstance(rows, slice) else rows[left]",
        "left = left if isinstance(rows, slice) else rows[left]",
        "rows to search again are numbered from the start of their slice",
        ("tests/exact/cpu/test_schedule.py::test_rows_after_the_first_blocks_climb",),
    ),
    Fault(
        "streams-not-synced",
        "src/tonari/streams/output.py",
        "            self._file.sync()\n",
        "",
        "the journal counts rows that a power cut can lose",
        ("tests/streams/test_files.py::test_small_chunks_reach_the_disk_together",),
    ),
    Fault(
        "io-lock-shared",
        "src/tonari/io/ground_truth_part.py",
        "if not locked(self._file.fileno(), shared=False):",
        "if not locked(self._file.fileno(), shared=True):",
        "two processes write the same file",
        ("tests/streams/test_files.py::test_two_runs_do_not_write_one_file",),
    ),
    Fault(
        "io-vecs-cut-off",
        "src/tonari/io/vecs.py",
        "if rows * stride != size:",
        "if rows == 0:",
        "a file that ends within a row is read without a word",
        ("tests/io/test_errors.py::test_size_belies_header",),
    ),
    Fault(
        "io-missing-ids",
        "src/tonari/io/ground_truth.py",
        "wide[wide < -1] += 2**32",
        "wide[wide < 0] += 2**32",
        "a missing neighbour becomes point 4294967295 in a file with large ids",
        ("tests/io/test_ground_truth.py::test_ids_from_2_to_the_31_on",),
    ),
    Fault(
        "graph-self-not-first",
        "src/tonari/graph/csr.py",
        "keys.real = 2 * rows + (matrix.indices != rows)",
        "keys.real = 2 * rows",
        "a point is after its duplicates of a smaller number",
        ("tests/graph/test_knn_graph.py::test_csr_both_ways",),
    ),
    Fault(
        "graph-index-out-of-range",
        "src/tonari/graph/lists.py",
        "refuse((ids < -1) | (ids >= n),",
        "refuse((ids < -1) | (ids > n),",
        "off by one: the index n is accepted",
        ("tests/graph/test_knn_graph.py::test_rows_that_are_no_lists_are_refused",),
    ),
    Fault(
        "select-merge-infinity",
        "src/tonari/select/merge.py",
        "np.lexsort((ids, -values if descending else values, missing))",
        "np.lexsort((ids, -values if descending else values))",
        "a missing entry comes before a neighbour at distance infinity",
        ("tests/select/test_merge.py::test_missing_entries_come_last",),
    ),
    Fault(
        "descent-better-side",
        "src/tonari/nn_descent/driver.py",
        "return min(measured, key=lambda recall: recall.low)",
        "return max(measured, key=lambda recall: recall.low)",
        "the recall of a merge is that of its better side",
        ("tests/graph/test_merging.py::test_what_is_missed_on_a_side_is_told",),
    ),
    Fault(
        "methods-most-dimensions",
        "src/tonari/methods/auto.py",
        "if problem.d > MOST_DIMENSIONS:",
        "if problem.d >= MOST_DIMENSIONS:",
        "off by one: no tree is considered in 30 dimensions",
        ("tests/methods/test_auto.py::test_trees_are_considered_up_to_30_dimensions",),
    ),
    Fault(
        "cli-exit-status",
        "src/tonari/cli/_common.py",
        'code = _fail(f"error: {_describe(error)}", 1)',
        'code = _fail(f"error: {_describe(error)}", 2)',
        "data that cannot be used ends like wrong usage",
        ("tests/cli/test_cli.py::test_bad_data_is_one_line_and_exit_code_1",),
    ),
    Fault(
        "cli-output-is-input",
        "src/tonari/cli/_common.py",
        "if source.exists() and target.samefile(source):",
        "if source == target:",
        "an input is overwritten through another name of it",
        ("tests/cli/test_cli.py::test_an_input_is_never_the_output",),
    ),
)

_SHARDS = (
    Fault(
        "shards-rows-not-synced",
        "src/tonari/shards/workspace.py",
        "                os.fsync(file.fileno())\n            sums.append",
        "            sums.append",
        "a task counts as done before its rows are on the disk",
        ("tests/shards/test_kills.py::test_a_build_that_ends_at_some_calls",),
    ),
    Fault(
        "shards-pair-skipped",
        "src/tonari/shards/pair_rounds.py",
        "for _ in range(len(ring) - 1):",
        "for _ in range(len(ring) - 2):",
        "some pairs of shards never meet",
        ("tests/shards/test_approximate_routes.py::test_every_two_shards_meet_once",),
    ),
    Fault(
        "shards-checksum-not-compared",
        "src/tonari/shards/workspace.py",
        "whole = array.nbytes == size and (name in self._own or _checksum(array) == checksum)",
        "whole = array.nbytes == size",
        "a part with a flipped bit is used",
        ("tests/shards/test_damage.py::test_a_damaged_part",),
    ),
    Fault(
        "shards-second-forgotten",
        "src/tonari/shards/dealing.py",
        "kept = distances <= (1 + shards.margin) * distances[:, :1]",
        "kept = distances < distances[:, :1]",
        "a row is in one shard only, whatever the margin",
        ("tests/shards/test_dealing.py::test_memberships_are_those_of_a_loop",),
    ),
    Fault(
        "shards-self-not-excluded",
        "src/tonari/shards/exact_route.py",
        "found = worker.nearest(queries, points, k, self_join=self_join)",
        "found = worker.nearest(queries, points, k)",
        "a row is its own neighbour",
        ("tests/shards/test_exact_route.py::test_any_slab_and_any_k",),
    ),
    Fault(
        "shards-other-points-resumed",
        "src/tonari/shards/build.py",
        "    pairs = ((manifest.source, points), (manifest.queries",
        "    pairs = ((manifest.source, manifest.source), (manifest.queries",
        "a build goes on with other points",
        ("tests/shards/test_build.py::test_other_points",),
    ),
)

FAULTS = _NATIVE + _CUDA + _PYTHON + _SHARDS

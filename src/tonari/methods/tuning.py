"""Tuning constants of the choice of a method, and sizes of caches. Each group names its benchmark case."""

# Case: kdtree auto-sift-d10, auto-uniform-d5, auto-magnitudes-d7 on cpu. Chosen on: an unrecorded machine.
MOST_DIMENSIONS = 30  # maximum dimensions of a tree; in more dimensions, its boxes exclude nothing
LEAST_POINTS = 128  # minimum points of a tree; a smaller tree has so few leaves that a search visits all of them
FEW_POINTS = 2_048  # with fewer points, the sizes alone decide: examining the data would take as long as the search
MOST_DIMENSIONS_OF_FEW = 12  # maximum for fewer than FEW_POINTS points: beyond it, queries visit nearly all leaves
PROBED = 256  # number of queries, evenly spaced, that probe the whole tree
SAMPLE_PROBED = 128  # number of queries that probe the trees of a sample
FIRST_PROBED = 32  # queries that probe a tree first; more follow unless the two methods' expected times differ much
PROBED_SHARE = {"cpu": 32, "cuda": 8}  # beyond FIRST_PROBED, at most one query in this many is probed
FAR_FACTOR = 2.0  # FIRST_PROBED queries suffice if the two methods' expected times differ by more than this factor
CHEAP_BUILD_FACTOR = 20.0  # no sample is needed if brute force takes this many times as long as building the tree
SAMPLE = 16  # a sample has one point in this many
LEAST_STEP = 8  # a sample of more than one point in this many is not used, because its trees would take too long
LEAST_SAMPLE = 2_048  # minimum number of points in a sample
SAMPLE_PER_NEIGHBOUR = 16  # minimum number of points in a sample, as a multiple of k
GROWTH_DAMPING = 0.25  # if visits grow as n^p in the sample, they grow as n^(p - GROWTH_DAMPING p²) beyond it
LEAST_SHARE = 0.75  # a tree may take as little as this share of the time that its sample predicts

# Case: kdtree auto-sift-d12, auto-sift-d15, auto-magnitudes-d10 on cpu. Chosen on: an unrecorded machine.
# Without a sample, a tree is only tried if brute force takes longer than the build by at least EXCESS_PER_DIMENSION of
# the build per dimension. A tree is built without a sample if a tree of uniform points would take at most as long as
# brute force, or MARGIN times as long if brute force starts in int8: on some data it is then much slower than expected,
# because it packs the points twice.
EXCESS_PER_DIMENSION = 0.1
MARGIN = 1.15
WORTH_A_LOOK = 0.3  # maximum share of brute force's time for examining the data, if a tree of uniform points is slower
WORTH_A_LOOK_IF_UNLIKELY = 0.15  # the same, if a tree of uniform points is much slower than brute force
LEAST_VISITS = 64  # minimum of the limit on the number of nodes that a query visits
LOOK_PATIENCE = 8.0  # limit on a query's time, as a multiple of its expected time: a few queries visit far more leaves

# Case: kdtree auto-sift-d10, auto-sift-d15 on cuda. Chosen on: an unrecorded machine.
# If a tree of uniform points would take more than UNLIKELY_FACTOR times as long as brute force, the data are examined
# only if brute force takes longer than the build of a tree by UNLIKELY_EXCESS times the build, and at least
# UNLIKELY_LEAST seconds: the first examination compiles kernels for 12 s (20 columns, H200, 16 processors).
UNLIKELY_FACTOR = 2.0
UNLIKELY_EXCESS = 7.0
UNLIKELY_LEAST = 0.1
VISIT_SECONDS = 1e-6  # seconds that a single query takes to visit a node or a leaf

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: an unrecorded machine.
CLEARLY = 1.5  # minimum expected speed-up before NN-Descent is chosen
DESCENT_PATIENCE = 2.0  # NN-Descent gives up after work that should take this many times as long as the fallback

# Case: radius cloud-200k on cpu. Chosen on: an unrecorded machine.
COUNTED = 32  # number of queries whose neighbours within the radius are counted in a sample of the points
COUNTED_AMONG = 1 << 16  # number of points in the sample among which neighbours are counted
SEARCHED = 64  # for at most this many nearest neighbours, a search is faster than lists of all points within the radius

# Not measured.
USUAL_K = 10  # an Index chooses its method for searches with this k
PREPARE_POINT = 2e-7  # approximate seconds per point to pack the points, or to build a tree of them
LOOKED_AT_ONCE = 1 << 16  # number of neighbours whose values are checked in one block
FEW_RESULTS = 1 << 12  # for at most this many distances, the smallest and the largest are found in host memory

# Not measured: enough for some hundred kinds of small calls; a full cache is emptied.
KEPT_CALLS = 64  # number of cached calls, by arguments
KEPT_DECISIONS = 256  # number of cached decisions, by sizes
KEPT_SEARCHES = 256  # number of cached searches, by arguments and sizes
KEPT_PLANS = 64  # number of cached plans for a segment of an Index, by sizes
KEPT_LOOKS = 64  # number of cached choices that depended on the data, by tensors on CUDA

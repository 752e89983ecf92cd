"""Tuning constants of the choice of a method, and sizes of caches. Each group names the case that chose it."""

# Case: kdtree auto-sift-d10, auto-uniform-d5, auto-magnitudes-d7 on cpu. Chosen on: an unrecorded machine.
MOST_DIMENSIONS = 30  # in more dimensions, the boxes of a tree exclude nothing
LEAST_POINTS = 128  # a smaller tree has so few leaves that a search visits all of them
FEW_POINTS = 2_048  # for fewer points, the sizes alone decide: examining the data would take as long as the search
MOST_DIMENSIONS_OF_FEW = 12  # in more dimensions, queries visit nearly all leaves of a tree of so few points
PROBED = 256  # queries that probe the whole tree, evenly spaced
SAMPLE_PROBED = 128  # queries that probe the trees of a sample
FIRST_PROBED = 32  # queries that are probed first; more follow unless the expected times differ much
PROBED_SHARE = {"cpu": 32, "cuda": 8}  # beyond FIRST_PROBED, at most one query in this many is probed
FAR_FACTOR = 2.0  # ratio of the expected times of tree and brute force above which FIRST_PROBED queries suffice
CHEAP_BUILD_FACTOR = 20.0  # the tree is built without a sample if brute force takes this many times its build
SAMPLE = 16  # the sample has one point in this many
LEAST_STEP = 8  # a sample has at most one point in this many, or is left out: its trees would take too long
LEAST_SAMPLE = 2_048  # smallest number of points in a sample
SAMPLE_PER_NEIGHBOUR = 16  # smallest number of points in a sample, as a multiple of k
GROWTH_DAMPING = 0.25  # if visits grow as n^p in the sample, they grow as n^(p - GROWTH_DAMPING p²) beyond it
LEAST_SHARE = 0.75  # a tree may take as little as this share of the time that the sample predicts

# Case: kdtree auto-sift-d12, auto-sift-d15, auto-magnitudes-d10 on cpu. Chosen on: an unrecorded machine.
# Without a sample, a tree is only tried if brute force takes longer than the build by at least EXCESS_PER_DIMENSION of
# the build per dimension. A tree is built without a sample if a tree of uniform points would take at most as long as
# brute force, or MARGIN times as long if brute force starts in int8: on some data it is then much slower than expected,
# because it packs the points twice.
EXCESS_PER_DIMENSION = 0.1
MARGIN = 1.15
WORTH_A_LOOK = 0.3  # largest share of brute force's time for examining data, if a tree of uniform points is slower
WORTH_A_LOOK_IF_UNLIKELY = 0.15  # the same if a tree of uniform points is much slower
LEAST_VISITS = 64  # smallest limit on the number of nodes that a query visits
LOOK_PATIENCE = 8.0  # limit on a query's time, as a multiple of the expected time: a few queries visit far more leaves

# Case: kdtree auto-sift-d10, auto-sift-d15 on cuda. Chosen on: an unrecorded machine.
# If a tree of uniform points would take UNLIKELY_FACTOR times as long as brute force, it is only tried if brute force
# takes longer than the build by UNLIKELY_EXCESS times the build, so that an examination in vain costs little in
# comparison. Brute force must also take UNLIKELY_LEAST seconds: the first examination compiles kernels for 12 s (20
# columns, H200, 16 processors), which shorter searches would hardly repay.
UNLIKELY_FACTOR = 2.0
UNLIKELY_EXCESS = 7.0
UNLIKELY_LEAST = 0.1
VISIT_SECONDS = 1e-6  # seconds that a single query takes to visit a node or a leaf

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: an unrecorded machine.
CLEARLY = 1.5  # minimum expected speed-up before NN-Descent is chosen
DESCENT_PATIENCE = 2.0  # NN-Descent gives up after work whose expected time is this many times the fallback's

# Case: radius cloud-200k on cpu. Chosen on: an unrecorded machine.
COUNTED = 32  # queries whose neighbours within the radius are counted in a sample of the points
COUNTED_AMONG = 1 << 16  # points in that sample
SEARCHED = 64  # up to this many nearest neighbours, a search is cheaper than lists of all points within the radius

# Not measured.
USUAL_K = 10  # an Index chooses its method as for searches with this k
PREPARE_POINT = 2e-7  # approximate seconds to pack a point, or to put it into a tree
LOOKED_AT_ONCE = 1 << 16  # neighbours whose values are checked in one block
FEW_RESULTS = 1 << 12  # up to this many distances, the smallest and the largest are found in host memory

# Not measured: enough for some hundred kinds of small calls; a full cache is emptied.
KEPT_CALLS = 64  # cached calls, by arguments
KEPT_DECISIONS = 256  # cached decisions, by sizes
KEPT_SEARCHES = 256  # cached searches, by arguments and sizes
KEPT_PLANS = 64  # cached plans of a segment of an Index, by sizes
KEPT_LOOKS = 64  # cached choices that depended on the data, by tensors on CUDA

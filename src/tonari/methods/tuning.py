"""Tuned values for the choice of a method, and sizes of the caches between calls."""

# Case: kdtree auto-sift-d10, auto-uniform-d5, auto-magnitudes-d7 on cpu. Chosen on: not recorded.
MOST_DIMENSIONS = 30  # in more dimensions, the boxes of a tree exclude nothing
LEAST_POINTS = 128  # a search visits all of the few leaves of a smaller tree
FEW_POINTS = 2_048  # fewer points have few leaves, nearly all of which are visited in more dimensions than this:
MOST_DIMENSIONS_OF_FEW = 12
PROBED = 256  # queries that probe the whole tree, evenly spaced
SAMPLE_PROBED = 128  # queries that probe the trees of a sample
FIRST_PROBED = 32  # queries that suffice if the methods are far apart
PROBED_SHARE = {"cpu": 32, "cuda": 8}  # probe at most one query in this many, beyond FIRST_PROBED
FAR_FACTOR = 2.0  # methods are far apart if one takes this many times as long as the other
CHEAP_BUILD_FACTOR = 20.0  # build the tree without a sample if brute force takes this many times as long
SAMPLE = 16  # the sample has one point in this many
LEAST_STEP = 8  # with a smaller step, the trees of samples cost as much as they can save
LEAST_SAMPLE = 2_048  # fewest points in the sample, and per neighbour:
SAMPLE_PER_NEIGHBOUR = 16
GROWTH_DAMPING = 0.25  # visits that grow as n^p in the sample grow as n^(p - GROWTH_DAMPING p²) beyond it
LEAST_SHARE = 0.75  # a tree may take as little as this share of the time that the sample predicts

# Case: kdtree auto-sift-d12, auto-sift-d15, auto-magnitudes-d10 on cpu. Chosen on: not recorded.
# Without a sample, a tree is only tried if brute force takes longer than the build by at least EXCESS_PER_DIMENSION of
# the build per dimension. A tree is built without a sample if a tree of uniform points would take at most as long as
# brute force, or MARGIN times as long if brute force begins in int8: on some data it is then much slower than expected,
# because it packs the points twice.
EXCESS_PER_DIMENSION = 0.1
MARGIN = 1.15
WORTH_A_LOOK = 0.3  # largest time of examining data, relative to brute force, if a tree of uniform points is slower,
WORTH_A_LOOK_IF_UNLIKELY = 0.15  # and if such a tree is much slower
LEAST_VISITS = 64  # smallest limit on the visits of a query that was not examined before its search
LOOK_PATIENCE = 8.0  # largest time of a query, relative to the expected one: a few queries visit far more leaves

# Case: kdtree auto-sift-d10, auto-sift-d15 on cuda. Chosen on: not recorded.
# If a tree of uniform points would take UNLIKELY_FACTOR times as long as brute force, it is only tried if brute force
# takes longer by UNLIKELY_EXCESS times the build: examining the data in vain then costs little in comparison. Brute
# force must also take UNLIKELY_LEAST seconds: the first examination compiles kernels for 12 s (20 columns, H200, 16
# processors), which shorter searches would hardly repay.
UNLIKELY_FACTOR = 2.0
UNLIKELY_EXCESS = 7.0
UNLIKELY_LEAST = 0.1
VISIT_SECONDS = 1e-6  # seconds that a single query takes to visit a node or a leaf

# Case: nn_descent sift-100k, curve-gaussian on cpu. Chosen on: not recorded.
CLEARLY = 1.5  # least expected speed-up before a graph that may miss neighbours is chosen
DESCENT_PATIENCE = 2.0  # NN-Descent gives up after the work that is expected to take this many times the fallback's

# Case: radius cloud-200k on cpu. Chosen on: not recorded.
COUNTED = 32  # queries whose neighbours are counted
COUNTED_AMONG = 1 << 16  # points of the sample in which neighbours are counted
SEARCHED = 64  # up to this many nearest neighbours, a search is cheaper than lists of all within the radius

# Not measured.
USUAL_K = 10  # the k for which an Index chooses its method
PREPARE_POINT = 2e-7  # approximate seconds of packing a point, or of putting it into a tree
LOOKED_AT_ONCE = 1 << 16  # counted neighbours that are examined in one step
FEW_RESULTS = 1 << 12  # so few values are copied from a device, and searched one by one, for the extremes

# Not measured: room for some hundred kinds of small calls; a cache that is full is emptied.
KEPT_CALLS = 64  # cached calls, by arguments
KEPT_DECISIONS = 256  # cached decisions, by sizes
KEPT_SEARCHES = 256  # cached searches, by arguments and sizes
KEPT_PLANS = 64  # cached plans of a segment of an Index, by sizes
KEPT_LOOKS = 64  # cached results of examining data, by tensors on CUDA

"""Tuned values for the choice of a method, and sizes of the caches between calls."""

# Case: kdtree auto-sift-d10, auto-uniform-d5, auto-magnitudes-d7 on cpu. Chosen on: not recorded.
MOST_DIMENSIONS = 30  # in more dimensions, the boxes of a tree exclude nothing
LEAST_POINTS = 128  # the few leaves of smaller trees are all visited
FEW_POINTS = 2_048  # fewer make only a few dozen leaves, and in more dimensions than this nearly all are visited:
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
# the build per dimension. It is built without one if a tree of uniform points would take as long as brute force, or
# MARGIN times as long where that begins in int8: some data are much harder then, for their points are packed twice.
EXCESS_PER_DIMENSION = 0.1
MARGIN = 1.15
WORTH_A_LOOK = 0.3  # share of brute force that a look may take if a tree of uniform points would take still longer,
WORTH_A_LOOK_IF_UNLIKELY = 0.15  # and if it would take much longer
LEAST_VISITS = 64  # smallest limit on the visits of a query that was not examined before its search
LOOK_PATIENCE = 8.0  # times the seconds of uniform points: few queries may visit far more than others, at less a visit

# Case: kdtree auto-sift-d10, auto-sift-d15 on cuda. Chosen on: not recorded.
# If a tree of uniform points would take UNLIKELY_FACTOR times as long as brute force, it is only tried if brute force
# takes longer by UNLIKELY_EXCESS times the build: a look that is in vain then costs little. Brute force must also take
# UNLIKELY_LEAST seconds: the first look compiles kernels, 12 s of them for 20 columns (H200, 16 processors), which
# shorter searches would hardly earn back.
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
PREPARE_POINT = 2e-7  # seconds of packing a point, or of putting it into a tree: about
LOOKED_AT_ONCE = 1 << 16  # neighbours that were counted

# Not measured: some hundred kinds of small calls at a time; when there are more, all are forgotten.
KEPT_CALLS = 64  # cached calls, by arguments
KEPT_DECISIONS = 256  # cached decisions, by sizes
KEPT_SEARCHES = 256  # cached searches, by arguments and sizes
KEPT_PLANS = 64  # cached plans of a segment of an Index, by sizes
KEPT_LOOKS = 64  # cached results of examining data, by tensors on CUDA

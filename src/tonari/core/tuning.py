"""Tuned numbers for threads and waiting times."""

# Case: small index-100x1000x3, search-100x1000x128 on cpu. Chosen on: not recorded.
WORTH_SHARING = 2e-3  # seconds of work; less work is finished before other threads have started [5e-4, 2e-3, 8e-3]
WORTH_STARTING = 5e-4  # seconds of work that make one more thread worth starting [2e-4, 5e-4, 1e-3]
LEAVE_SECONDS = 2e-4  # how often the caller's thread checks whether the others have ended [1e-4, 2e-4, 5e-4]

# Not measured: delays that a person notices, and waits for threads that may never start or end.
WAKE_SECONDS = 0.1  # how often the waiting thread checks for Ctrl-C
LISTED_SECONDS = 0.01  # seconds of one native call on listed points, so that Ctrl-C takes effect soon
SHOW_FROM_SECONDS = 2.0  # work that takes longer than this shows its progress by default
BEGIN_SECONDS = 0.5  # longest wait for a thread that may never start
IDLE_SECONDS = 0.2  # how long a thread that is kept waits for more work
EXIT_SECONDS = 1.0  # wait for our threads at exit; they stop as fast as after Ctrl-C, unless they run the caller's code
HOLD_SECONDS = 10.0  # bounded, because at exit another thread may wait for a lock that the held thread owns
LOOK_SECONDS = 0.001  # how often the state of the thread is checked during that time

# Not measured: a bound of memory, of 64 MB, which plans leave for small changes.
CUT_ENTRIES = 1 << 21  # entries of lists on a device that are filtered in one step, at some 30 bytes each

# Not measured: chosen for readers.
RECORDED_CHOICES = 8  # choices that are recorded about one subject, such as the screened columns of many shards

"""Tuned numbers for threads and waiting times.

The comment above a group names the benchmark cases that time it, and the machine whose timings chose the numbers.
Values in brackets are the alternatives that ``python -m benchmarks tune core`` times.
"""

# Case: small index-100x1000x3, search-100x1000x128 on cpu. Chosen on: an unrecorded machine.
# The work that is worth sharing among threads.
WORTH_SHARING = 2e-3  # longest work, in seconds, that one thread ends before others have started [5e-4, 2e-3, 8e-3]
WORTH_STARTING = 5e-4  # minimum seconds of work per thread [2e-4, 5e-4, 1e-3]
LEAVE_SECONDS = 2e-4  # interval at which the caller's thread checks if other threads have ended [1e-4, 2e-4, 5e-4]

# Not measured: delays in seconds that a person notices, and waits for threads that may never start or end.
WAKE_SECONDS = 0.1  # interval at which a waiting thread checks for Ctrl-C
LISTED_SECONDS = 0.01  # duration of one native call on listed points; Ctrl-C takes effect between calls
SHOW_FROM_SECONDS = 2.0  # minimum expected seconds of work whose progress is shown by default
BEGIN_SECONDS = 0.5  # longest wait for a thread that may never start
IDLE_SECONDS = 0.2  # how long an idle thread waits for more work
EXIT_SECONDS = 1.0  # longest wait for the library's threads at exit; threads that run the caller's code may take longer
HOLD_SECONDS = 10.0  # maximum seconds that a caller's thread is blocked at exit; it may hold a lock that others need
LOOK_SECONDS = 0.001  # interval at which exit checks whether the library's threads have ended

# Not measured: limits scratch memory to 64 MB, which plans leave for small buffers.
CUT_ENTRIES = 1 << 21  # entries of lists on a device that are filtered in one step, with some 30 bytes each

# Not measured: chosen for readers.
RECORDED_CHOICES = 8  # maximum number of recorded choices about one subject, such as the columns of many shards

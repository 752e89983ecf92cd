"""Which method answers, and where.

engines.py, engines_cuda.py   the methods of each place under the same few names
auto.py                       method="auto": what is expected to take less time
decision.py                   what it decided, and why
"""

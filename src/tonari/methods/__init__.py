"""Which method answers, and where.

registry.py               the methods, by name and device
place.py, place_cuda.py   where a verb runs: the CPU, CUDA devices; where.py says which
auto.py                   method="auto": what is expected to take less time
decision.py               what was decided, and why
answer.py                 a decision carried out
plan.py, explain.py       `tonari.plan`, `tonari.explain`
"""

"""The choice of the method that answers a call, and of the device that it runs on.

registry.py               the methods, by name and device
place.py, place_cuda.py   the place where a call runs, the CPU or CUDA devices; where.py selects it
call.py                   what a caller asked for, checked once
points.py                 points that calls search: a search is replayed, or decided and run
repeated.py               small searches on the CPU that are repeated, which are recognised before anything is checked
answer.py                 how a decision is made, kept and carried out
auto.py                   method="auto": the method that is expected to take the least time
decision.py               the chosen method, its plan, and the reason
radius.py                 who finds what is within a radius
no_queries.py             answers to calls without queries
value_range.py            values beyond the range of their type, which are refused
plan.py, explain.py       `tonari.plan`, `tonari.explain`
warm.py                   `tonari.warm`
"""

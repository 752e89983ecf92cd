"""The choice of the method that answers a call, and of its device.

registry.py               the methods, by name and device
place.py, place_cuda.py   the place where a call runs, the CPU or CUDA devices; where.py selects it
call.py                   the arguments of a call, checked once
points.py                 the points of a call: a search is replayed, or decided and run
repeated.py               repeated small searches on the CPU, which are recognised before any check
answer.py                 making, caching and running a decision
auto.py                   method="auto": the method that is expected to take the least time
decision.py               the chosen method, its plan, and the reason
radius.py                 the choice of the method for a radius search
no_queries.py             answers to calls without queries
value_range.py            values beyond the range of their type, which are refused
plan.py, explain.py       `tonari.plan`, `tonari.explain`
warm.py                   `tonari.warm`
"""

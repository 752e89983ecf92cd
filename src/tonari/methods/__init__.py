"""The choice of the method that answers a call, and of the device that it runs on.

registry.py               the methods, by name and device
place.py, place_cuda.py   the place where a call runs, the CPU or CUDA devices; where.py selects it
auto.py                   method="auto": the method that is expected to take the least time
decision.py               the chosen method, its plan, and the reason
answer.py                 how a decision is made and carried out
plan.py, explain.py       `tonari.plan`, `tonari.explain`
"""

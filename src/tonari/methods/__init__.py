"""The choice of the method and the device that answer a call.

places/        the device that searches the rows of a call, and the searches of its points
options.py     the options that several public functions have, declared once
call.py        the arguments of a call, checked once
repeated.py    repeated small searches on the CPU, which are recognised before any check
answer.py      making, caching and running a decision
registry.py    the methods, by name and device
auto.py        method="auto": the exact method that is expected to be fastest
auto_graph.py  the same for graphs that may miss neighbours
decision.py    a decision: the chosen method, its plan, and the reason
radius.py      the choice of the method for a radius search
"""

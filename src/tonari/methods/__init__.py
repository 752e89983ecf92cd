"""The choice of the method that answers a call, and of its device.

rows/          the rows of a call: the place where they are searched, and the searches of points
options.py     the options that public functions share, as the caller gave them
call.py        the arguments of a call, checked once
repeated.py    repeated small searches on the CPU, which are recognised before any check
answer.py      making, caching and running a decision
registry.py    the methods, by name and device
auto.py        method="auto": the method that is expected to take the least time; auto_graph.py: for approximate graphs
decision.py    the chosen method, its plan, and the reason
radius.py      the choice of the method for a radius search
"""

"""The points in the forms and orders that searches read.

prepared.py      points -> form (centred, scaled, or normalised) -> packed copy in a kernel's layout
contraction.py   decides whether a form is contracted to few columns
clusters.py      an order of rows that makes near rows adjacent
copies.py        finds duplicate rows that cannot be in any answer, so that they need not be packed
codes.py         points that are in memory only as codes
code_forms.py    chooses the form of codes: how many columns, and which directions
boxes.py         an order of coded points in small cells, and the boxes around the cells
"""

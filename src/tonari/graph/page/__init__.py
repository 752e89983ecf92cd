"""A page about a graph: one HTML file without scripts or external resources.

contents.py   the numbers, each by a function of statistics.py, structure.py, spectral.py and recall.py
charts.py     histograms and the map as inline SVG
template.py   the HTML around them
style.py      its CSS, for light and dark, narrow and wide
"""

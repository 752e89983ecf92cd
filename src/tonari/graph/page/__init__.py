"""A page about a graph: one HTML file without scripts or external resources.

contents.py   computes the numbers of the page by statistics.py, structure.py, spectral.py and recall.py
charts.py     histograms and the map as inline SVG
template.py   the HTML around the numbers and charts
"""

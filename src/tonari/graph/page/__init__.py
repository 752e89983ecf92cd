"""A page about a graph: one HTML file without scripts or external resources.

contents.py   computes the numbers on the page with statistics.py, structure.py, spectral.py and recall.py
charts.py     histograms and the map as inline SVG
template.py   the HTML around the numbers and charts
"""

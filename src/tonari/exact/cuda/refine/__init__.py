"""Refinement: exact values of the candidates of a screen, and the certificate that no other point is in the answer.

group_lists.py, mirror_notes.py         the output of a screen: all minima, or groups or points below a threshold
candidate_groups.py, candidate_parts.py, limit_members.py    the choice of groups and members to refine
groups.py, lowest.py, listed.py, within.py                   exact values, and the best of them
certify.py                                                   the certificate
"""

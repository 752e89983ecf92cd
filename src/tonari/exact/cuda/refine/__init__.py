"""Refinement: exact values of the candidates of a screen, and the certificate that no other point is in the answer.

group_lists.py                          the output of a screen, and the choice among its lists of groups or points
candidate_parts.py, limit_members.py    the choice of parts and members to refine
groups.py, lowest.py, listed.py, within.py                   exact values: the k best, or all within a limit
certify.py                                                   the certificate of each row
"""

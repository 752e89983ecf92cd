"""What every room may use and which uses none of them.

errors.py    exceptions that callers tell apart
"""

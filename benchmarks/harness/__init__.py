"""What all suites share: one of each. Nothing here knows a suite or a paper."""

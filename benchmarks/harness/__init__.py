"""The common part of all suites. No module here imports a suite or a paper."""

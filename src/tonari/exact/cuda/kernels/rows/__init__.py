"""Kernels that convert rows to the forms and packed copies that screens read."""

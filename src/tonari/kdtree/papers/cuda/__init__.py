"""The buffered traversal on CUDA."""

"""The exact engine on CUDA: matrix units rank, exact float64 values decide, a bound proves each row."""

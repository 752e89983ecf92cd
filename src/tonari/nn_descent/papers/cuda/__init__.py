"""The rounds of wang2021 on CUDA."""

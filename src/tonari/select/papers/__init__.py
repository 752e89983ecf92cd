"""Methods of papers that method="auto" never uses on CUDA: queues (tang2015) and quick multi-select (komarov2014)."""

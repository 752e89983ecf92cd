"""The machines whose rows the tables show."""

XEON = {"machine": "Intel(R) Xeon(R) Processor (family 6 model 207)", "threads": 2}
EPYC = {"machine": "AMD EPYC (family 26 model 2)", "threads": 2}
EPYC_AVX512 = {**EPYC, "isa": "avx512"}
EPYC_ZEN4 = {"machine": "AMD EPYC (family 25 model 17)", "threads": 2, "isa": "avx512"}
EPYC_ZEN4_AVX2 = {**EPYC_ZEN4, "isa": "avx2"}
H100 = {"machine": "NVIDIA H100 80GB HBM3", "device": "cuda"}
H200 = {"machine": "NVIDIA H200", "device": "cuda"}

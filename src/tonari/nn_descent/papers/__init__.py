"""The rounds of wang2021 on CUDA, used only if a plan has `update="gnnd"`.

cuda/gnnd.py             a round of its own; all other steps are nn_descent/cuda/backend.py
                         lists with distances                                  cuda/kernels/lists.py
                         own samples, reverse samples, both joined             kernels/sample.py, append.py, join.py
                         samples against each other, proposals                 kernels/cross.py
                         insertion behind spinlocks                            kernels/insert.py

tests/helpers/gnnd_reference.py has a round in plain NumPy: the specification of the kernels.
"""

"""Kernels for CUDA devices, written in Triton: one file per kernel, its launcher beside it.

They are imported when scores lie on a CUDA device and triton is installed (``kernels.on_gpu``); the torch references are their
specification. With TRITON_INTERPRET=1 in the environment before the first import they run on the CPU, slowly: so they are tested.
"""

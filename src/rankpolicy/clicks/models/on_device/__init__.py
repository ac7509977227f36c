"""EM of click models on a CUDA device, in float64; imported when a fit goes there."""

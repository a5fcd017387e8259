"""Theory of sections 3 and 5 of the paper: Fourier transform, isometries, and bounds for any angle and shift."""

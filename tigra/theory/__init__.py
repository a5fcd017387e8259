"""The theory in the paper's sections 3 and 5: Fourier transform, isometries, bounds for any angle and shift."""

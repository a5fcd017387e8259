"""DeepScat: scattering features and an affine PCA classifier."""

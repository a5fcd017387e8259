"""DeepScat: scattering features, and a plane for each class."""

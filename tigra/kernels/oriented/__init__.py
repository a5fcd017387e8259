"""Compiled loops of the oriented layers: frames of a padded grid, batch normalisation, coarsening."""

"""What to train and how it is compared: recipes, methods, runs, and the paper's tables."""

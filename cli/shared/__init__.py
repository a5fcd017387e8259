"""Code shared by several commands: options, output, signals, and loading a model's data."""

"""What more than one command uses: options, output, signals, the data a model is shown."""

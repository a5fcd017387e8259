"""Several processes: teams, which share one training through MPI."""

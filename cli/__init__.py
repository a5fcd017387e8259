"""The command line of tigra; installed as tigra_cli."""

"""`python -m tigra`: the command line, where the command `tigra` is not on the path."""

from tigra_cli.main import main

if __name__ == "__main__":
    main(prog_name="tigra")

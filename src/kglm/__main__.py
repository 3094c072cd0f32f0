"""`python -m kglm` is the `kglm` command."""

from kglm.cli import main

if __name__ == "__main__":
    main()

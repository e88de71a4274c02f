"""`python -m alma` is the `alma` command."""

from alma.cli import main

if __name__ == "__main__":
    main()

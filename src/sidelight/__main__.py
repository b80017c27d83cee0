"""Run the command line: ``python -m sidelight``."""

from sidelight.app.cli import main

if __name__ == "__main__":
    main()

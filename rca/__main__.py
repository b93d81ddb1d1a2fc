"""`python -m rca`, and the installed command."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still being loaded is told as at any other time."""
    try:
        from rca.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("\nrca: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()

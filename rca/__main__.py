"""`python -m rca`."""

from rca.cli import main

main()

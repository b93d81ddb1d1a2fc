"""What to show when no known cause explains a failure: odd lines, causes they resemble, data that is missing."""

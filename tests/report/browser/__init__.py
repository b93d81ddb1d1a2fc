"""What only a browser can tell about the page."""

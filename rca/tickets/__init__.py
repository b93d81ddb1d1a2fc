"""A diagnosis as a comment, an attachment or a message where the incident is discussed."""

"""Twin, arms, judges and the child process that runs them."""

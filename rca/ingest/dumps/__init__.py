"""What PyTorch and debuggers dump: flight recorders, memory snapshots, stacks."""

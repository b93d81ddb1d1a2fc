"""Memory of the devices and of the host."""

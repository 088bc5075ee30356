"""What must hold after any call, as properties that several suites use."""

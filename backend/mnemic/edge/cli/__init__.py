"""The command line: one module a command; heavy modules are imported by the command that runs."""

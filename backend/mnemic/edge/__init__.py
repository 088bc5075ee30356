"""The outside world: command line, MCP, worker. Edges do not know each other."""

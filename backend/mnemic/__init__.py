"""Memory for Python services that run AI agents."""

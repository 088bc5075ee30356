"""Memory for agents over the Model Context Protocol."""

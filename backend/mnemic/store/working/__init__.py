"""Working memory: one behaviour in three places."""

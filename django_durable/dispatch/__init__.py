"""From a committed intent to a message: hints on the spine, the outbox, and the nudge after commit."""

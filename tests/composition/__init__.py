"""What a workflow is composed of, beyond steps of its own turn, one after the other."""

"""What a user writes with: ``workflow``, ``step``, ``Retry`` and the context of a turn."""

"""What tests of field reports share: workers that a test kills, and executions in bulk."""

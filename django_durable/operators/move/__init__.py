"""Move a tenant's executions to another plane: fence, copy, verify, switch, remove; resumable anywhere."""

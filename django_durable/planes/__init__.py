"""Which database holds which tenant's executions."""

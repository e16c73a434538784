"""What a process does with due work: claim it, run its turn, keep its lease, sweep."""

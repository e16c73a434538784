"""What tests are made with: fresh databases, real processes, waiting with a deadline."""

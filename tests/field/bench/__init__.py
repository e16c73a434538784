"""What several tests of field reports share: workflows for real workers, a worker in this process, a watch on locks."""

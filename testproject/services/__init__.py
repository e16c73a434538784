"""The servers that tests and demo need, from whatever this machine has, gone when their owner is.

Neither root nor a container is needed, and root is no obstacle.
"""

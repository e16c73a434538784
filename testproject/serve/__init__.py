"""``make serve``: the admin, a worker, and executions in every state that an operator meets.

``python -m testproject.serve`` needs nothing but this checkout. Its database and its files are gone afterwards.
"""

"""The only code that changes an execution.

``transitions``: one function, one transaction on one plane. ``journal``: the fenced append. ``messages``: the
mailbox. ``session``: one turn's view of its execution, the seam through which the authoring context works.
"""

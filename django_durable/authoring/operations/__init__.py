"""What a workflow can do, by subject: each module has a base of ``Context`` with its operations.

Every operation takes one position on every path. A position that has a record is answered from it; otherwise
the operation is carried out and recorded.
"""

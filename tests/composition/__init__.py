"""Composition: updates, events, callbacks, approvals, children and what is made of them."""

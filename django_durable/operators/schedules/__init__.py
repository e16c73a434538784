"""Schedules: what is due is decided, once; an operator pauses, edits, triggers, backfills.

A fire is its schedule and its nominal time. One transaction on the schedule's plane moves ``next_at`` on, by
compare-and-set, writes the time's row, which is unique, and starts the execution under a key of its own. Whoever
comes second, whatever it is, changes nothing.
"""

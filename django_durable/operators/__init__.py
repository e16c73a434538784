"""The verbs: one function each for code, admin, REST and command line, on top of the transitions."""

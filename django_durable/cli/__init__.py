"""``manage.py durable VERB``: one module a verb, or a small group of them; ``verbs`` lists them all.

stdout is data, stderr is talk. A verb reads its options, calls an operator's function, and shows what came of
it; rules live further down. To add one: a ``Verb`` in a module of its own, and its line in ``verbs``.
"""

"""The REST interface: ``path("durable/", include("django_durable.rest.urls"))``, with the extra ``rest``.

It has no rules of its own. ``view`` is what all views stand on: who asks (``permission``), for which tenant
(``operators.scope``), how often (``throttle``), and what becomes of an error (``problem``). ``bodies`` and
``representations`` are what comes in and goes out, ``filters`` and ``paging`` what a list has. The other modules are
one noun of the address each, and call what code, admin and command line call.
"""

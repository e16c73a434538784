import pytest
from django.db import connection
from tests.admin.test_lists_follow_an_index import *
from tests.admin.test_lists_follow_an_index import client, pages, page_queries
pytestmark = pytest.mark.django_db
def test_y(client):
    for page in pages(client, f"{HINTS}?state=live"):
        for q in page_queries(client, page):
            with connection.cursor() as c:
                c.execute(("EXPLAIN ANALYZE "+q).replace("%","%%"), [])
                print(page[-120:], q[q.index("WHERE"):], *[r[0] for r in c.fetchall()], sep="\n")

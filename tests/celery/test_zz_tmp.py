from collections import defaultdict
from tests.celery.conftest import *
def test_pool(fleet):
    fleet.project.own_env.update(DJANGO_SETTINGS_MODULE="pool_settings")
    import os
    os.environ["PYTHONPATH"]="/tmp/celery_helper_pool"+os.pathsep+os.environ.get("PYTHONPATH","")
    worker = fleet.worker("-c", "4")
    fleet.beat()
    embedded = fleet.project.manage("durable", "worker", "--concurrency", "2")
    ex=[fleet.start("queries", f"q{n}") for n in range(80)]
    try: fleet.outputs(ex, within=25)
    except AssertionError:
        from django_durable.models import Execution, Checkpoint, DispatchHint
        from django.db import connection
        for e in Execution.objects.exclude(status="completed"):
            print("STUCK", {f.attname: getattr(e,f.attname) for f in e._meta.concrete_fields})
            print([ {f.attname: getattr(c,f.attname) for f in c._meta.concrete_fields} for c in Checkpoint.objects.filter(execution_id=e.id)])
            print([ {f.attname: getattr(c,f.attname) for f in c._meta.concrete_fields} for c in DispatchHint.objects.filter(execution_id=e.id)])
        print("all hints", DispatchHint.objects.count())
        with connection.cursor() as c:
            c.execute("select now(), pid, state, wait_event, query, xact_start from pg_stat_activity where datname=current_database()")
            for r in c.fetchall(): print(r)
        raise
    users = defaultdict(set)
    for line in fleet.lines():
        pid, _w, backend = line.split(); users[backend].add(pid)
    print({b:len(p) for b,p in users.items() if len(p)>1}, len(users), {p for s in users.values() for p in s})
    print([l for l in worker.stderr.splitlines() if "INFO" not in l][-20:], embedded.stderr[-800:])

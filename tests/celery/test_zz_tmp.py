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
    fleet.outputs(ex, within=90)
    users = defaultdict(set)
    for line in fleet.lines():
        pid, _w, backend = line.split(); users[backend].add(pid)
    print({b:len(p) for b,p in users.items() if len(p)>1}, len(users), {p for s in users.values() for p in s})
    print([l for l in worker.stderr.splitlines() if "INFO" not in l][-20:], embedded.stderr[-800:])

# SPDX-License-Identifier: MIT
"""What comes with the agent: dashboards that ask for nothing which is not exported, and a unit that systemd takes."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
GRAFANA = TREE / "packaging/grafana"
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build").resolve()
PROMTOOL = shutil.which("promtool") or shutil.which("promtool", path=str(BUILD / "engines/usr/bin"))

FAMILY = re.compile(r'^FAMILY\(\w+,\s*"(\w+)",\s*(\w+)', re.M)
METRIC = re.compile(r'^METRIC\(\w+,\s*"[^"]*",\s*\w+,\s*[^,]+,\s*\w+,\s*(\w+),\s*"(\w+)"', re.M)
# Families of these come from metrics.def; of processes and jobs the agent's own table tells.
THINGS = {"HOST", "DISK", "NIC", "MOUNT", "GPU", "SELF"}


def exported():
    names = set()
    for name, kind in FAMILY.findall((TREE / "src/agent/families.def").read_text()):
        names |= {name + "_bucket", name + "_sum", name + "_count"} if kind == "HISTOGRAM" else {name}
    return names | {name for entity, name in METRIC.findall((TREE / "src/model/metrics.def").read_text()) if entity in THINGS}


def queries(value):
    """Every expression in a dashboard, and what its variables ask for."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("expr", "query") and isinstance(inner, str):
                yield inner
            yield from queries(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from queries(inner)


@pytest.mark.parametrize("name", ["node", "run", "fleet"])
def test_queries_use_what_is_exported(name):
    board = json.loads((GRAFANA / f"{name}.json").read_text())
    known, asked = exported(), set()
    for query in queries(board):
        asked |= set(re.findall(r"\bspotter_\w+", query))
    assert len(known) > 60 and len(asked) >= 5
    assert asked <= known, f"{sorted(asked - known)} are not exported"
    assert board["uid"] == f"spotter-{name}" and len({p["id"] for p in board["panels"]}) == len(board["panels"])


def test_dashboards_are_as_their_table():
    sys.path.insert(0, str(GRAFANA))
    try:
        import make
    finally:
        sys.path.remove(str(GRAFANA))
    for name, value in make.dashboards().items():
        assert json.loads((GRAFANA / name).read_text()) == value, f"{name} is old: run packaging/grafana/make.py"


@pytest.mark.skipif(not PROMTOOL, reason="no promtool (Debian: prometheus)")
def test_queries_are_promql(tmp_path):
    """As rules, which promtool reads."""
    rules = []
    for board in GRAFANA.glob("*.json"):
        for number, query in enumerate(q for p in json.loads(board.read_text())["panels"] for q in queries(p["targets"])):
            query = re.sub(r"\$__rate_interval", "5m", query).replace("$run_id", ".*").replace("$node", ".*")
            rules.append({"record": f"{board.stem}:{number}", "expr": query})
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))  # JSON is YAML
    done = subprocess.run([PROMTOOL, "check", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze (Debian: systemd)")
def test_unit_is_one(tmp_path):
    text = (TREE / "packaging/systemd/spotter-agent.service.in").read_text()
    assert "@bindir@" in text
    unit = tmp_path / "spotter-agent.service"
    # Its manual page is installed with it.
    unit.write_text(text.replace("@bindir@/spotter", str(BUILD / "spotter")).replace("Documentation=", "#"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    about = [line for line in (done.stdout + done.stderr).splitlines() if "spotter-agent" in line]
    assert not about, about

# SPDX-License-Identifier: MIT
"""Every query of the Grafana dashboards, asked as Grafana asks it, of a real Prometheus and a real VictoriaMetrics that hold a
fleet with everything planted that a panel is about (tests/programs/fleet_feed.c), and of a real agent: each finds something, and
shares are shares."""
import json
import math
import re
import time
import urllib.parse

import pytest

from fleet_world import ask, asked, pour, settle
from push_world import DIRECT, Prometheus, VictoriaMetrics, get_text, need_libcurl, wait_for

pytestmark = pytest.mark.one_user

EVERY, LENGTH = 30, 360  # seconds: of samples, and how far back they go
# Of each run what has something planted, and what it is told apart from.
CHOSEN = (16, 17, 18, 37, 38, 39, 49, 50, 62, 63)
BOARDS = ("node", "run", "fleet")


def board(tree, name):
    return json.loads((tree / f"packaging/grafana/{name}.json").read_text())


# --- what Grafana does with a query before it sends it

def quoted(value):
    """For a regular expression within a string of PromQL, as the Prometheus data source escapes values of a variable."""
    return re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", value.replace("\\", "\\\\\\\\"))


def filled(query, values, interval=4 * EVERY):
    """With the values of its variables; a list is what was chosen of one. $__rate_interval is four times the interval of scraping."""
    words = {"__rate_interval": f"{interval}s", "__interval": f"{EVERY}s", "__range": f"{LENGTH}s",
             **{name: f"({'|'.join(map(quoted, chosen))})" if len(chosen) > 1 else quoted(chosen[0])
                for name, chosen in values.items()}}
    query = re.sub(r"\$\{?(\w+)\}?", lambda found: words[found[1]], query)
    assert "$" not in query
    return query


def choices(engine, made, at):
    """{name: every value} of a dashboard's variables: label_values(family, label) is a call of the API, for the time shown."""
    found = {}
    for variable in made["templating"]["list"]:
        if variable["type"] == "datasource":
            continue
        family, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
        found[variable["name"]] = asked(engine, f"/api/v1/label/{label}/values",
                                        **{"match[]": family, "start": at - LENGTH, "end": at})
    return found


def drawn(engine, query, begin, end):
    """[(labels, [value...])] of what a panel would draw."""
    rows = asked(engine, "/api/v1/query_range", query=query, start=begin, end=end, step=EVERY)["result"]
    return [(row["metric"], [float(v) for _, v in row["values"]]) for row in rows]


def targets(made):
    return [(panel, target["expr"]) for panel in made["panels"] for target in panel["targets"]]


# --- the fleet

@pytest.fixture(scope="module", params=[Prometheus, VictoriaMetrics])
def planted(request, tmp_path_factory):
    need_libcurl()
    engine = request.param(tmp_path_factory.mktemp("engine"))
    try:
        engine.start()
        # A little ago: an engine may keep what is new to itself for a while.
        engine.end = int(time.time()) - 60
        bodies = pour(engine, "fleet_feed", engine.end - LENGTH, engine.end, EVERY, "full", ",".join(map(str, CHOSEN)))
        assert bodies == len(CHOSEN) * (LENGTH // EVERY + 1)
        settle(engine, 'count(spotter_run_up{node=~"node-.*"})', len(CHOSEN) + 1, engine.end)
        yield engine
    finally:
        engine.done()


def wrong(engine, panel, query, values):
    """What is not as it should be with this query; None: nothing."""
    text = filled(query, values)
    rows = drawn(engine, text, engine.end - 4 * EVERY, engine.end)
    numbers = [v for _, points in rows for v in points]
    if not rows or not any(map(math.isfinite, numbers)):
        return f"{panel['title']}: nothing from {text}"
    # 5 %: rates are extrapolated to the ends of their range
    if panel["fieldConfig"]["defaults"]["unit"] == "percentunit" and not all(-0.001 <= v <= 1.05 for v in numbers
                                                                             if math.isfinite(v)):
        return f"{panel['title']}: {min(numbers)} to {max(numbers)} are no shares: {text}"
    return None


@pytest.mark.parametrize("name", BOARDS)
def test_every_query_finds_something(tree, planted, name):
    made = board(tree, name)
    everything = choices(planted, made, planted.end)
    assert all(len(values) > 1 for values in everything.values())
    found = [wrong(planted, panel, query, everything) for panel, query in targets(made)]
    assert len(found) >= 11 and not any(found), "\n".join(filter(None, found))


def test_the_variables_are_the_fleet(tree, planted):
    assert choices(planted, board(tree, "node"), planted.end) == {"node": [f"node-{n:02}" for n in CHOSEN]}
    assert choices(planted, board(tree, "run"), planted.end) == {"run_id": [f"700{n}.0" for n in range(1, 6)]}


def test_one_of_them(tree, planted):
    """With one value chosen, nothing of the others is drawn."""
    for name, label, value in (("run", "run_id", "7002.0"), ("node", "node", "node-63")):
        for panel, query in targets(board(tree, name)):
            assert not (problem := wrong(planted, panel, query, {label: [value]})), problem
            for labels, _ in drawn(planted, filled(query, {label: [value]}), planted.end - EVERY, planted.end):
                assert labels.get(label, value) == value, panel["title"]


def now(planted, tree, name, title):
    """{labels less their names: value} at the end."""
    query, = [query for panel, query in targets(board(tree, name)) if panel["title"] == title]
    rows = ask(planted, filled(query, choices(planted, board(tree, name), planted.end)), planted.end)
    return {tuple(v for k, v in sorted(labels.items()) if k in ("cause", "gpu", "kind", "node", "rank", "reason", "run_id", "state")): value
            for labels, value in rows}


def test_panels_show_what_is_planted(tree, planted):
    def fleet(title):
        return now(planted, tree, "fleet", title)
    nodes = len(CHOSEN)
    assert fleet("Nodes") == {(): nodes} and fleet("Runs") == {(): 5}
    assert fleet("GPUs") == fleet("GPUs held by a run") == {(): 8 * nodes + 2}
    assert fleet("GPUs held and idle") == {(): 2}  # of the notebook; those of the run that hangs were busy before
    # 36 % of the eight GPUs of one node, 12 % of those of two: as `spotter fleet` counts them, not of the whole run
    assert fleet("GPUs' worth of time lost by cause") == {("slow_storage",): pytest.approx(0.36 * 8),
                                                          ("sync_points",): pytest.approx(0.12 * 16)}
    slow = fleet("Own work of a rank, of the median of its run")
    assert {key[:2] for key in slow} == {("node-17", "137"), *(("node-39", str(rank)) for rank in range(56, 64))}
    assert slow[("node-17", "137", "7001.0")] == pytest.approx(1.55, rel=0.03)
    still = fleet("Seconds since the last step")
    assert still[("7003.0",)] == pytest.approx(200, abs=2) and all(v < 2 for key, v in still.items() if key != ("7003.0",))
    held = fleet("Clocks held back")
    assert set(held) == {("1", "node-17", "thermal")} and held[("1", "node-17", "thermal")] == pytest.approx(0.97, rel=0.02)
    spent = now(planted, tree, "run", "Where the time of the training loop goes")
    assert sum(spent.values()) == pytest.approx(1) and spent[("comm_wait",)] > 0.1
    errors = now(planted, tree, "node", "GPU errors (XID)")
    assert {key[:2] for key, value in errors.items() if value > 0.5} == {("2", "node-63")}
    left = now(planted, tree, "node", "Left out: too many of them")
    assert {key for key, value in left.items() if value} == {("rank", "node-63")}


# --- a real machine

def test_a_real_node(tree, planted, spotter, tmp_path):
    """What an agent of this machine pushed is found by every query of the board of nodes about something this machine has."""
    spotter.env.update(DIRECT)
    address = tmp_path / "address"
    with open(address, "wb") as out:
        spotter.start("agent", "--listen", "127.0.0.1:0", "--node", "real-node", "--records", spotter.dir,
                      "--remote-write", planted.write_url(), "--push-every", "1s", stdout=out, stderr=out)
    page = wait_for(lambda: (at := re.search(r"http://[\w.:]+", address.read_text())) and
                    get_text(urllib.parse.urljoin(at[0], "/metrics")), "the agent's page")
    made = board(tree, "node")
    told = set(re.findall(r"^(spotter_\w+)[{ ]", page, re.M))
    wanted = [(panel["title"], filled(query, {"node": ["real-node"]}, interval=60)) for panel, query in targets(made)
              if set(re.findall(r"\bspotter_\w+", query)) <= told]
    # A machine has CPUs and memory, the agent costs something; pressure, disks, networks and GPUs not every one has.
    assert len(wanted) >= 5

    def silent():
        get_text(planted.url("/internal/force_flush"))  # VictoriaMetrics'; Prometheus knows no such page
        return [title for title, query in wanted
                if not any(math.isfinite(value) for _, value in ask(planted, query, time.time()))]
    try:
        wait_for(lambda: not silent(), "data for every panel")
    except AssertionError:
        pytest.fail(f"no data for {silent()}")
    busy, = [value for title, query in wanted if title == "CPU busy" for _, value in ask(planted, query, time.time())]
    assert 0 <= busy <= 1

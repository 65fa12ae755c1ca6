# SPDX-License-Identifier: MIT
"""report --html and --svg: files that hold what they promise, whatever a record holds. How the page looks in a
browser is tests/web/test_report.py's."""
import base64
import hashlib
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from conftest import Spotter
from test_gpu import TRAIN as TRAIN_ON_GPU
from virtual_gpu import PYTHON, vgpu  # noqa: F401 (fixture)

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'\x1b[2J\u202egnp\u2028"
MOST = 500_000

TRAIN = """
import os, subprocess, sys, time
sys.path.insert(0, os.environ["SPOTTER_PYTHON"])
import spotter
hostile = sys.argv[1]
child = subprocess.Popen([sys.argv[2], "30"])
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
for i in range(1, 31):
    work(1.0 if i == 20 else 0.06)
    spotter.step(loss=3.0 / i, **{hostile: float(i)})
    if i == 10:
        with spotter.phase(hostile):
            time.sleep(0.2)
child.kill()
child.wait()
open("cpu_s", "w").write(str(sum(os.times()[:4])))
"""


class Page(HTMLParser):
    """The texts of the elements that matter, and every tag there is."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.scripts, self.style, self.policy, self.texts = [], [], "", None, {}
        self.open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append([attrs, ""])
        if attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> within {self.open}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1][1] += data
        elif self.open and self.open[-1] == "style":
            self.style += data
        elif self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data


def refuse(word):
    raise AssertionError(f"{word} in JSON")


def story_of(page):
    (data, code) = page.scripts
    assert data[0] == {"type": "application/json", "id": "story"} and "type" not in code[0]
    return json.loads(data[1], parse_constant=refuse)


def digits(value):
    return len(re.sub(r"e.*|[-.]|^0+", "", repr(value)).strip("0"))


def check_series(track, points):
    assert set(track) <= {"id", "group", "title", "unit", "limit", "limit_name", "series"}
    assert track["group"] in ("gpu", "cpu", "memory", "io", "steps", "loss")
    assert track["unit"] in ("%", "cores", "bytes", "bytes/s", "1/s", "W", "s", "")
    for series in track["series"]:
        assert set(series) <= {"name", "mean", "min", "max"}
        for key in ("mean", "min", "max"):
            values = series.get(key, [None] * points)
            assert len(values) == points
            assert all(v is None or (math.isfinite(v) and digits(v) <= 4) for v in values)
        for low, mean, high in zip(series.get("min", []), series["mean"], series.get("max", [])):
            if mean is not None:
                assert low <= mean * 1.001 + 1e-9 and mean <= high * 1.001 + 1e-9


def check_timeline(line):
    assert line["to"] > line["from"] >= 0
    assert 1 <= len(line["t"]) <= 600 and line["t"] == sorted(set(line["t"]))
    assert line["from"] <= line["t"][0] and line["t"][-1] <= line["to"] * 1.0001
    ids = [t["id"] for t in line["tracks"]]
    assert len(ids) == len(set(ids)) and "cpu" in ids and "memory" in ids
    for track in line["tracks"]:
        check_series(track, len(line["t"]))
    assert all(p["to"] > p["from"] and p["name"] for p in line["phases"])
    assert all(set(e) == {"t", "kind", "text"} for e in line["events"])


def check_flame(flame):
    """Preorder, and self and children add up to the whole: as far as four digits can."""
    strings, nodes = flame["strings"], flame["nodes"]
    assert strings[0] == "" and 0 < len(nodes) <= 2500
    below = [0.0] * len(nodes)
    for i, (parent, function, file, line, self_s, total) in enumerate(nodes):
        assert -1 <= parent < i and strings[function] and file < len(strings) and line >= 0
        if parent >= 0:
            below[parent] += total
    for (parent, *_, self_s, total), kids in zip(nodes, below):
        assert math.isclose(self_s + kids, total, rel_tol=2e-3, abs_tol=1e-6)
    assert math.isclose(sum(n[5] for n in nodes if n[0] == -1), flame["total_s"], rel_tol=2e-3)


def check_ledgers(verdict):
    if "time" in verdict:
        shares = sum(line["share"] for line in verdict["time"]["ledger"])
        assert math.isclose(shares + verdict["time"]["unaccounted"], 1, abs_tol=0.01)
    cpu = verdict["cpu"]
    if "cores" in cpu:
        cores = sum(line["cores"] for line in cpu["ledger"])
        assert math.isclose(cores + cpu["unaccounted"] * cpu["cores"], cpu["cores"], abs_tol=0.01 + 0.01 * cpu["cores"])


def check_story(story):
    assert story["schema"] == "spotter.report/1" and story["spotter"]
    assert story["verdict"]["schema"] == "spotter.verdict/1"
    assert story["markdown"].startswith("### Spotter: ")
    check_timeline(story["timeline"])
    check_ledgers(story["verdict"])
    if "flame" in story:
        check_flame(story["flame"])
    if "steps" in story:
        steps = story["steps"]
        n = len(steps["t"])
        assert 0 < n <= 600 and len(steps["step"]) == len(steps["seconds"]) == n and len(steps["wait"]) in (0, n)
        assert all(len(s["t"]) == len(s["v"]) <= 600 for s in steps["scalars"])
    for slow in story["slow_steps"]:
        assert slow["seconds"] > slow["usual_s"] and isinstance(slow["differed"], list)
    known = {"pid", "name", "command", "role", "cpu_s", "lived_s", "peak_bytes", "read_bytes", "written_bytes"}
    assert story["processes"] and all({"pid", "name"} <= set(p) <= known for p in story["processes"])
    for pairs in (story["machine"], story["settings"]):
        assert all(len(p) == 2 and all(isinstance(x, str) for x in p) for p in pairs)
    causes = {f["cause"] for f in story["verdict"]["findings"] + story["verdict"]["notes"]}
    assert set(story["docs"]) == causes and all(text.startswith("# ") for text in story["docs"].values())


def check_page(text):
    """The file as a whole: small, one policy that allows just what is in it, nothing from elsewhere."""
    assert len(text.encode()) < MOST
    page = Page(text)
    assert page.open == []

    def digest(data):
        return "'sha256-" + base64.b64encode(hashlib.sha256(data.encode()).digest()).decode() + "'"

    assert page.policy.split("; ") == [
        "default-src 'none'", f"script-src {digest(page.scripts[1][1])}", f"style-src {digest(page.style)}",
        "img-src data:", "base-uri 'none'", "form-action 'none'"]
    for tag, attrs in page.tags:
        assert tag in ("html", "head", "meta", "title", "style", "body", "main", "noscript", "h1", "pre", "div", "script",
                       "svg", "rect", "text", "line", "path", "circle"), tag
        assert not [a for a in attrs if a in ("src", "href", "style") or a.startswith("on")], (tag, attrs)
    story = story_of(page)
    check_story(story)
    return page, story


def texts_of(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, str):
        yield value


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory):
    """A folder with the run of a small training in which everything has a hostile name."""
    s = Spotter(tmp_path_factory.mktemp("trained"))
    (s.home / "train.py").write_text(TRAIN)
    child = s.home / "<b>&\x1b[2J\udcff"
    shutil.copy("/bin/sleep", child)
    s("run", "--quiet", "--name", HOSTILE, "--", sys.executable, s.home / "train.py", HOSTILE, child, check=True,
      cwd=s.home)
    s.settled()
    return s.dir, float((s.home / "cpu_s").read_text())


@pytest.fixture
def trained(spotter, trained_runs):
    """.cpu_s: what the kernel gave it."""
    runs, spotter.cpu_s = trained_runs
    shutil.copytree(runs, spotter.dir)
    return spotter


def html_of(spotter, *args, **kwargs):
    """Bytes, as they are: nothing replaced on the way."""
    done = subprocess.run([spotter.binary, "report", *map(str, args), "--html", "-"], env=spotter.env, timeout=60,
                          capture_output=True, **kwargs)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()  # strictly


def test_a_training_with_hostile_names(trained):
    page, story = check_page(html_of(trained))
    for text in [*texts_of(story["timeline"]), *texts_of(story["processes"]), *texts_of(story.get("flame", {})),
                 *texts_of(story["machine"]), *texts_of(story["steps"]), story["verdict"]["run"]["name"],
                 *story["verdict"]["run"]["argv"], page.texts["pre"], page.texts["title"]]:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text), ascii(text)
    # shown all the same
    assert any(s["name"].startswith("</script><script>alert(1)") for s in story["steps"]["scalars"])
    assert story["timeline"]["phases"][0]["name"].startswith("</script><script>alert(1)")
    assert any("<b>&" in p["name"] for p in story["processes"])
    assert "</script><script>alert(1)" in page.texts["pre"]

    assert [s["name"] for s in story["steps"]["scalars"]][0] == "loss"
    assert len(story["steps"]["t"]) == 30 and story["steps"]["step"] == list(range(1, 31))
    assert 20 in [slow["step"] for slow in story["slow_steps"]]
    ids = {t["id"]: t for t in story["timeline"]["tracks"]}
    assert {"cpu", "memory", "step_time", "loss"} <= set(ids)
    # the same as `why` says, but for the names
    why = trained.json("why")
    # As much as the kernel gave it, be it little; less what it used since a last tick that was late.
    line = story["timeline"]
    used = sum(v or 0 for v in ids["cpu"]["series"][0]["mean"]) * (line["to"] - line["from"]) / len(line["t"])
    assert 0.5 * trained.cpu_s < used < 1.2 * trained.cpu_s + 0.2, (used, trained.cpu_s)
    why["run"]["name"], why["run"]["argv"] = story["verdict"]["run"]["name"], story["verdict"]["run"]["argv"]
    assert story["verdict"] == why


def test_flame_and_roles(trained):
    _, story = check_page(html_of(trained))
    if story["verdict"]["level"] < "L2":
        pytest.skip("no stacks here")
    flame = story["flame"]
    names = [flame["strings"][n[1]] for n in flame["nodes"]]
    assert "main" in names and "work" in names
    # Nearly all it does is to work: of the time it was seen at all, which may be short.
    total = max(n[5] for n, name in zip(flame["nodes"], names) if name == "work")
    most = max(n[5] for n, name in zip(flame["nodes"], names) if name == "main")
    assert 0 < total <= flame["total_s"] * 1.002 and total > 0.3 * most, (total, most, flame["total_s"])
    assert any(p.get("role") == "main" for p in story["processes"])


def test_a_gpu(spotter, vgpu):  # noqa: F811
    vgpu('gpu "A<b>100"')
    spotter("run", "--quiet", "--", PYTHON, "-c", TRAIN_ON_GPU, "4", check=True)
    spotter.settled()
    _, story = check_page(html_of(spotter))
    tracks = {t["id"]: t for t in story["timeline"]["tracks"]}
    busy, = [s["mean"] for s in tracks["gpu0_busy"]["series"] if s["name"] == "busy"]
    late = [v for v in busy[len(busy) // 2:] if v is not None]
    assert late and 2 < sum(late) / len(late) < 99, busy  # 30 ms of work, 30 ms of none: more where there is no CPU
    used = [v for v in tracks["gpu0_memory"]["series"][0]["mean"] if v is not None]
    assert max(used) > 2e9 and tracks["gpu0_memory"]["limit"] > max(used)
    assert any(name == "GPU 0" and "A<b>100" in text and "simulated" in text for name, text in story["machine"])


def test_picture(trained, tmp_path):
    trained("report", "--svg", tmp_path / "run.svg", check=True)
    root = ET.fromstring((tmp_path / "run.svg").read_bytes())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    tags = {e.tag.split("}")[1] for e in root.iter()}
    assert tags <= {"svg", "title", "rect", "text", "line", "path", "circle"}, tags
    words = [e.text or "" for e in root.iter() if e.tag.endswith("text")]
    assert any(w.startswith("Who used the CPU") for w in words) and "CPU" in words
    assert any(w.startswith("Memory") for w in words)
    assert any("<script>" in w for w in words)
    for element in root.iter():
        for key, value in element.attrib.items():
            assert not key.startswith("on") and "nan" not in value and "inf" not in value


def test_without_steps_stacks_and_gpu(run):
    _, story = check_page(html_of(run))
    assert "steps" not in story and story["slow_steps"] == []
    assert not [t for t in story["timeline"]["tracks"] if t["group"] in ("gpu", "steps", "loss")]
    root = ET.fromstring(run("report", "--svg", "-", check=True).out)
    assert root.tag.endswith("svg")


def test_short_of_a_tick(spotter):
    spotter("run", "--quiet", "--stacks", "0", "--", "true", check=True)
    spotter.settled()
    text = html_of(spotter)
    page = Page(text)
    assert len(text) < MOST and story_of(page)["schema"] == "spotter.report/1"
    ET.fromstring(spotter("report", "--svg", "-", check=True).out)


def test_a_process_that_runs_now(spotter):
    child = subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"])
    try:
        text = spotter("report", child.pid, "--for", "1s", "--html", "-", check=True).out
    finally:
        child.kill()
        child.wait()
    check_page(text)


def test_where_it_goes(run, tmp_path):
    page, picture = tmp_path / "a.html", tmp_path / "a.svg"
    done = run("report", "--html", page, "--svg", picture, check=True)
    assert done.out == "" and str(page) in done.err and str(picture) in done.err
    assert page.read_text().startswith("<!doctype html>") and picture.read_text().startswith("<svg")
    again = run("report", "--html", page)
    assert again.code == 1 and "is there already" in again.err and "--force" in again.err
    page.write_text("old")
    run("report", "--html", page, "--force", check=True)
    assert page.read_text().startswith("<!doctype html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "a.svg", "home"]


@pytest.mark.parametrize("args, words", [
    (["--html", ""], "the name of the file is empty"),
    (["--html", "{tmp}"], "is a directory"),
    (["--svg", "{tmp}/no/such/x.svg"], "no such file or directory"),
    (["--html", "{tmp}/x", "--svg", "{tmp}/x"], "cannot both be"),
    (["--html", "{record}", "--force"], "is the record itself"),
    (["--html", "/dev/full"], "no space left on device"),
    (["no-such-run", "--html", "{tmp}/x.html"], "no-such-run"),
])
def test_bad_paths(run, tmp_path, args, words):
    record, = run.records()
    before = record.read_bytes()
    done = run("report", *(a.format(tmp=tmp_path, record=record) for a in args))
    assert done.code == 1 and words in done.err and done.out == "", done
    assert [p.name for p in tmp_path.iterdir()] == ["home"] and record.read_bytes() == before


@pytest.mark.parametrize("args", [["--html", "-", "--json"], ["--svg", "-", "--step", "3"]])
def test_what_does_not_go_together(run, args):
    assert run("report", *args).code == 2


def test_no_room_leaves_no_half_file(run, tmp_path):
    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))  # SQLite's own files need some
    done = run("report", "--html", tmp_path / "x.html", preexec_fn=small)
    assert done.code == 1 and "file too large" in done.err.lower(), done.err
    assert [p.name for p in tmp_path.iterdir()] == ["home"]


def test_a_record_nobody_may_write(run, tmp_path):
    record, = run.records()
    record.chmod(0o444)
    run.dir.chmod(0o555)
    try:
        check_page(html_of(run, record))
    finally:
        run.dir.chmod(0o755)


@pytest.mark.long
def test_a_day(spotter, build, tmp_path):
    """40 processes, 400 threads and 8 GPUs for 24 hours: the page is there in two seconds, and small."""
    record = tmp_path / "day.spot"
    subprocess.run([build / "bench/synth_day", "--keep", record], check=True, timeout=900, stdout=subprocess.DEVNULL)
    took = []
    for _ in range(3):
        begin = os.times()
        text = html_of(spotter, record)
        end = os.times()
        took.append(end.children_user + end.children_system - begin.children_user - begin.children_system)
    assert min(took) < 2, took
    _, story = check_page(text)
    groups = [t["group"] for t in story["timeline"]["tracks"]]
    assert groups.count("gpu") == 24 and "cpu" in groups
    assert [t["id"] for t in story["timeline"]["tracks"][:8]] == [f"gpu{i}_busy" for i in range(8)]
    busy = story["timeline"]["tracks"][0]["series"][0]
    assert sum(v is not None for v in busy["mean"]) > 0.9 * len(busy["mean"])

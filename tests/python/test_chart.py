# SPDX-License-Identifier: MIT
"""The chart of a notebook: well-formed, small, and true to the numbers."""
import json
import sys
import xml.etree.ElementTree as ET

import pytest

from programs import PACKAGE

sys.path.insert(0, str(PACKAGE.parent))
from spotter import _chart, _live  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def drawn(state, status=""):
    """The chart as XML, after checks that hold for every one."""
    text = _chart.html(state, status)
    assert len(text.encode()) < 50000
    assert "<script" not in text and "href" not in text and "NaN" not in text.replace("NaNs", "")
    return ET.fromstring(text)


def says(root):
    return [t.text for t in root.iter(SVG + "text")]


def training(seconds=60, gpus=0):
    s = _chart.State()
    for i in range(seconds * 10):
        t = i / 10
        s.sample("job.cpu", None, t, 1.5 * t)
        s.sample("job.rss", None, t, 1e9 + i * 1e6)
        for g in range(gpus):
            s.sample("gpu.busy", g, t, 0.25)
            s.sample("gpu.memory_used", g, t, 2e9)
            s.sample("gpu.memory_total", g, t, 8e9)
        if i % 10 == 0:
            s.sample("job.cores_allowed", None, t, 2)
            s.sample("mem.total", None, t, 64e9)
            s.sample("cgroup.memory_limit", None, t, 16e9)
            s.step(7, t, 25, 2.0)
    return s


def test_values_of_a_training():
    s = training(gpus=1)
    root = drawn(s, "recording")
    assert {"CPU", "1.50 of 2 cores", "GPU", "25 %, 2 GB of 8 GB", "steps", "25 a second", "loss",
            "2"} <= set(says(root))
    assert any(t.endswith("of 16 GB") for t in says(root))  # the tighter limit
    assert len(list(root.iter(SVG + "polyline"))) == 5
    line = _chart.text(s)
    assert "CPU 1.50 of 2 cores" in line and "\n" not in line


def test_absent_is_left_out_and_not_zero():
    s = _chart.State()
    assert "no samples yet" in _chart.html(s) and ET.fromstring(_chart.html(s)) is not None
    s.sample("mem.total", None, 0.0, 64e9)
    shown = says(drawn(s))
    assert shown.count("not known yet") == 2  # CPU and memory of the job
    assert not {"GPU", "steps", "loss"} & set(shown)


def test_a_long_recording_of_many_gpus_stays_small():
    s = training(seconds=3000, gpus=16)
    root = drawn(s)
    assert "16 GPUs" in says(root)
    assert all(len(line.get("points").split()) <= _chart.POINTS + 2 for line in root.iter(SVG + "polyline"))
    assert "1.50 of 2 cores" in says(root)


@pytest.mark.parametrize("status", ['<b>&"\'', "a\x00b\x1b[31m\ud800\ufffe", "]]>", "x" * 200])
def test_names_are_shown_as_text(status):
    root = drawn(training(3), status)
    assert not list(root.iter(SVG + "b")) and not list(root.iter("b"))
    assert "<b>" not in _chart.html(training(3), status)
    assert ET.fromstring(_chart.verdict_html(status + "\n" + status)).tag == "div"


def test_numbers_nobody_expects():
    s = training(3)
    for value in (float("nan"), float("inf"), -1e308, 1e308, 0.0):
        s.step(7, 3.0, 1, value)
        s.sample("job.rss", None, 3.0, value)
    s.step(8, 3.0, 0, None)
    drawn(s)


def test_constant_and_negative_losses_have_a_scale():
    s = _chart.State()
    for t in range(5):
        s.step(1, float(t), 1, -3.0)
    drawn(s)


def test_idle_is_zero_cores_and_no_step_is_said():
    s = training(10)
    s.sample("job.cores_allowed", None, 40.0, 2)
    shown = says(drawn(s))
    assert "0.00 of 2 cores" in shown and "none for 31 s" in shown


def test_a_slow_training_has_its_rate():
    s = _chart.State()
    for i in range(5):
        s.step(1, 8.0 * i, 1, None)
    assert "0.125 a second" in says(drawn(s))


def test_the_process_with_most_steps_is_shown():
    s = training(5)
    for t in range(5):
        s.step(99, float(t), 1, 77.0)
    assert "77" not in says(drawn(s))


@pytest.mark.parametrize("how, expected", [("mean", 2.0), ("max", 3.0), ("last", 1.0)])
def test_what_falls_into_one_slot(how, expected):
    line = _chart.Line(how)
    for t, v in ((0.1, 2.0), (0.2, 3.0), (0.3, 1.0)):
        line.add(t, v)
    assert line.points() == [(0.3, expected)]


def test_thinning_keeps_the_mean_and_a_counter():
    mean, counter = _chart.Line(), _chart.Line("last")
    for i in range(10000):
        mean.add(i, float(i % 2))
        counter.add(i, 3.0 * i)
    assert len(mean.points()) <= _chart.POINTS and all(abs(v - 0.5) < 0.01 for _, v in mean.points()[1:-1])
    assert all(abs(rate - 3.0) < 1e-9 for _, rate in counter.rates())


def test_a_slot_that_has_just_begun_is_no_rate():
    """Two steps within a millisecond of the last slot are not 2000 a second."""
    counter = _chart.Line("last")
    for i in range(41):
        counter.add(i / 10, float(i))
    counter.add(4.001, 42.0)
    assert all(9.0 < rate < 11.0 for _, rate in counter.rates()), counter.rates()
    assert counter.rates()[0][0] == 0.4  # and the line begins where the counter does


def test_a_verdict_is_as_wide_as_the_page():
    words = "Time    44 % idle, 31 % queued (main\n        thread of python)\nFinding a < b\n\n          table"
    rows = [row.text or "" for row in ET.fromstring(_chart.verdict_html(words))]
    assert rows == ["Time    44 % idle, 31 % queued (main thread of python)", "Finding a < b", "", "          table"]


def test_a_follower_asks_for_what_is_new(monkeypatch):
    follower, asked = _live.Follower("x.spot"), []
    answers = [[{"metric": "job.cpu", "key": None, "t": 1.5, "value": 1.0, "steps": None, "row": None},
                {"metric": "step", "key": 3, "t": 1.0, "value": 0.5, "steps": 4, "row": 4}], []]

    def run(command, **_):
        asked.append(command[-1])
        out = json.dumps(answers.pop(0)).encode() if answers else b"not JSON"
        return type("Done", (), {"returncode": 0, "stdout": out})
    monkeypatch.setattr(_live, "executable", lambda: "spotter")
    monkeypatch.setattr(_live.subprocess, "run", run)
    assert follower.look() and not follower.look() and not follower.look()
    assert "t > -1.0" in asked[0] and "rowid > 0" in asked[0]
    assert "t > 1.5" in asked[1] and "rowid > 4" in asked[1]
    assert follower.state.steps[3].points() == [(1.0, 4)]

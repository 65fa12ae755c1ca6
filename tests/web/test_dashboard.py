# SPDX-License-Identifier: MIT
"""The dashboard in Debian's Chromium, driven by Playwright (dashboard.js): real runs, of which one goes on while it is
looked at and one has a name of the worst kind.

Needs what `tools/setup browser` installs; skipped with a reason where it is not there. Screenshots stay in the folder of
the test."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from test_report import BUILD, HERE, RECORD, modules, shown

SECONDS = 400  # for all of it; it takes 25 where nothing else runs
PATIENCE = 120
HOSTILE = "<img src=x onerror=\"window.hurt=1\">\u202egpj\x1b[31m"
BUSY = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        sum(range(500))
    time.sleep(0.02)
"""


def started(command, **kwargs):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **kwargs)


def over(child):
    """Ended, with all that it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def runs_of(env):
    out = subprocess.run([BUILD / "spotter", "runs", "--json"], env=env, capture_output=True, check=True, timeout=PATIENCE).stdout
    return json.loads(out)["runs"]


def awaited(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE} s in vain for {what}"
        time.sleep(0.1)
    return condition()


def talk(child, answers):
    """Does what the browser's script asks for, till it ends."""
    for line in child.stdout:
        answers[line.strip()]()
        child.stdin.write("done\n")
        child.stdin.flush()


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What dashboard.js saw."""
    place = modules()
    chromium = shutil.which("chromium") or pytest.skip("needs Debian's chromium")
    folder = tmp_path_factory.mktemp("dashboard")
    env = dict(os.environ, SPOTTER_DIR=str(folder / "runs"), HOME=str(folder), NO_COLOR="1")
    spotter = BUILD / "spotter"
    (folder / "runs").mkdir()
    shutil.copy(RECORD, folder / "runs")
    past = runs_of(env)[0]["id"]
    subprocess.run([spotter, "run", "--quiet", "--name", HOSTILE, "--", "sleep", "0.3"], env=env, check=True, timeout=PATIENCE)
    flag, children = folder / "over", []
    try:
        program = started([spotter, "run", "--quiet", "--name", "going", "--", sys.executable, "-c", BUSY, flag], env=env)
        children.append(program)
        going = awaited(lambda: [r["id"] for r in runs_of(env) if r.get("name") == "going"], "a run that goes on")[0]
        server = started([spotter, "serve", "--port", "0"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        children.append(server)
        url = server.stdout.readline().strip()
        if not url:
            pytest.skip(server.stderr.read())
        (folder / "plan.json").write_text(json.dumps({"url": url, "past": past, "going": going, "runs": 3}))
        with open(folder / "errors", "w+") as errors:
            browser = subprocess.Popen(["node", HERE / "dashboard.js", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=errors, encoding="utf-8", start_new_session=True,
                                       env=dict(os.environ, NODE_PATH=place, CHROMIUM=chromium))
            children.append(browser)
            end = threading.Timer(SECONDS, os.killpg, (browser.pid, signal.SIGKILL))
            end.start()
            try:
                talk(browser, {"ended?": flag.touch, "gone?": lambda: server.send_signal(signal.SIGINT)})
                assert browser.wait(timeout=PATIENCE) == 0, (folder / "errors").read_text(errors="replace")
            finally:
                end.cancel()
        assert server.wait(timeout=PATIENCE) == 0
    finally:
        flag.touch()
        for child in children:
            over(child)
    return json.loads((folder / "seen.json").read_text(encoding="utf-8")) | {"folder": folder, "url": url, "past_id": past, "going_id": going}


def test_the_token_leaves_the_address(seen):
    l, origin = seen["list"], seen["url"].split("?")[0]
    assert l["address"] == origin
    assert [(c["httpOnly"], c["sameSite"]) for c in l["cookie"]] == [(True, "Strict")] and l["script"] == ""
    assert seen["going"]["address"] == origin + "run/" + seen["going_id"]


def test_the_list(seen):
    l = seen["list"]
    text = shown(l["text"])
    assert (l["going"], l["past"], l["sign"]) == (1, 2, "Live") and l["title"] == "1 running – spotter"
    for words in ("Runs", "3 runs, 1 going on", "Going on", "Past", "photos", "exit 0", "finding", "The training thread loads the data itself",
                  "running, "):
        assert words in text, words
    assert "NaN" not in text and "undefined" not in text
    assert l["sparks"] and all(length > 20 for length in l["sparks"])


def test_asks_for_nothing_elsewhere_and_complains_about_nothing(seen):
    for part in ("list", "past", "going", "stranger"):
        assert seen[part]["problems"] == [], part


def test_names_are_only_words(seen):
    assert seen["list"]["inert"] == {"images": 0, "links": [], "handlers": 0}  # "hurt" is absent: nothing ran
    assert '<img src=x onerror="window.hurt=1">' in seen["list"]["text"]
    for sign in ("\x1b", "\u202e"):
        assert sign not in seen["list"]["text"]


def test_values_change_while_it_goes_on(seen):
    assert seen["list"]["before"] != seen["list"]["after"]
    g = seen["going"]
    assert g["before"]["line"] != g["after"]["line"] and "still going" in shown(g["after"]["line"]) and g["sign"] == "Live"


def test_charts_are_drawn_and_drawn_again(seen):
    if not seen["past"]["canDraw"]:
        pytest.skip("this spotter was built without uPlot: tools/setup web")
    charts = seen["past"]["charts"]
    assert len(charts) >= 4 and all(c["inked"] > 1000 for c in charts)
    g = seen["going"]
    assert g["before"]["range"] != g["after"]["range"]
    assert g["charts"] and g["charts"][0]["sum"] != g["chartsAfter"][0]["sum"]


def test_a_run_that_ends_gets_its_end(seen):
    assert "exit 0" in shown(seen["going"]["end"]) and seen["going"]["endSign"] == "Over"


def test_the_page_of_a_run_is_the_reports(seen):
    p = seen["past"]
    assert "The training thread loads the data itself" in shown(p["heading"]) and p["sign"] == "Over" and p["headers"] == 1
    assert "Served by spotter serve" in p["foot"] and p["address"].endswith("/run/" + seen["past_id"])
    assert "PhotoFolder.load" in p["text"] and p["back"] == seen["url"].split("?")[0]


def test_who_has_no_token_sees_nothing(seen):
    assert seen["stranger"]["status"] == 403 and "token" in seen["stranger"]["text"]


def test_a_server_that_is_gone_is_said(seen):
    assert "is the server still there" in seen["gone"]["sign"] and seen["gone"]["runs"] == 3


def test_filters(seen):
    assert "No run is called that" in seen["list"]["none"] and seen["list"]["filtered"] == 1


def test_a_narrow_window_does_not_scroll_sideways(seen):
    assert seen["list"]["width"] == 1280 and seen["list"]["narrow"]["width"] == 360


@pytest.mark.parametrize("view", ["list", "dark", "narrow", "past"])
def test_axe_finds_nothing(seen, view):
    result = (seen[view] if view in seen else seen["list"][view])["axe"]
    if result is None:
        pytest.skip("needs axe-core: tools/setup browser")
    assert result["passes"] > 10
    assert result["found"] == []


def test_dark_is_dark(seen):
    assert re.fullmatch(r"rgb\(19, 20, 22\)", seen["list"]["dark"]["paper"])

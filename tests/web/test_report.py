# SPDX-License-Identifier: MIT
"""The HTML report in Debian's Chromium, driven by Playwright (look.js). The page is the one the program writes; its
story is replaced by story.py's, which has all there is to show, under names of the worst kind.

Needs what `tools/setup browser` installs; skipped with a reason where it is not there. Screenshots and the PDF stay in
the folder of the test."""
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import story as stories

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]
BUILD = Path(os.environ.get("SPOTTER_BUILD") or TREE / "build")
RECORD = TREE / "zoo/stored/photos-inline.root.spot"
SECONDS = 300  # for all of it; it takes 12 where nothing else runs
STORY = re.compile(r'(<script type="application/json" id="story">)(.*?)(</script>)', re.S)
LARGEST = 500_000


def modules():
    for place in [str(BUILD / "npm/node_modules"), str(TREE / "build/npm/node_modules"),
                  *os.environ.get("NODE_PATH", "").split(":")]:
        if place and (Path(place) / "playwright-core").is_dir():
            return place
    pytest.skip("needs Playwright: tools/setup browser")


def with_story(page, story):
    """The same page about something else. A data block is under no policy, and `<` must not end it."""
    text = json.dumps(story).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    replaced, n = STORY.subn(lambda m: m[1] + text + m[3], page)
    assert n == 1
    return replaced


def made(*options):
    return subprocess.run([BUILD / "spotter", "report", RECORD, *options], capture_output=True, check=True, timeout=60).stdout


def without_charts(page):
    """As a Spotter writes it that was built without uPlot (which look.js takes away): with a picture."""
    if 'id="timeline-svg"' in page:
        return page
    picture = re.search(r"<svg.*</svg>", made("--svg", "-").decode(), re.S)[0]
    data = '<script type="application/json"'
    return page.replace(data, f'<div id="timeline-svg" hidden>{picture}</div>\n{data}', 1)


@pytest.fixture(scope="module")
def report():
    return made("--html", "-").decode()


@pytest.fixture(scope="module")
def seen(report, tmp_path_factory):
    """What look.js saw."""
    place = modules()
    chromium = shutil.which("chromium") or pytest.skip("needs Debian's chromium")
    folder = tmp_path_factory.mktemp("report")
    for name, page in (("real", report), ("story", with_story(report, stories.story())),
                       ("bare", with_story(report, stories.bare())), ("plain", without_charts(report))):
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    child = subprocess.Popen(["node", HERE / "look.js", folder], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, encoding="utf-8", errors="replace", start_new_session=True,
                             env=dict(os.environ, NODE_PATH=place, CHROMIUM=chromium))
    try:
        out, err = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        pytest.fail(f"the browser did not end within {SECONDS} s")
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)  # whatever of it is left
        except ProcessLookupError:
            pass
    assert child.returncode == 0, err
    return json.loads(out) | {"folder": folder}


@pytest.fixture
def drawing(seen):
    """`seen`, of a page with charts."""
    if not seen["canDraw"]:
        pytest.skip("this spotter was built without uPlot: tools/setup web")
    return seen


def shown(text):
    return text.replace("\u00a0", " ")


def test_says_first_what_holds_it_up(seen):
    assert shown(seen["heading"]) == "2 loader workers are too few: the training waits for data 42 % of its time"
    assert shown(seen["title"]).endswith("42 % of its time – spotter")
    text = shown(seen["text"])
    for words in ("2 findings", "Give the DataLoader 6 workers", "about 16.1 steps/s (14.3 to 17.0)",
                  "About 62 % faster (44 to 71 %); then the GPU", "3.42 of 8 cores",
                  "Waiting for data", "2 loader workers",
                  "All of them mended: about 74 % faster (50 to 85 %)", "0.8 % of one core", "13.3× the usual 98 ms",
                  "On which NUMA node its memory and its GPU are is not recorded: numa_remote"):
        assert words in text, words


def test_asks_for_nothing_and_complains_about_nothing(seen):
    """No error, no warning, no request, on any page that was opened."""
    for part in (seen, seen["dark"], seen["narrow"], seen["bare"], seen["real"], seen["plain"]):
        assert part["problems"] == []


def test_names_are_only_words(seen):
    assert seen["inert"] == {"images": 0, "links": [], "handlers": 0}  # "hurt" is absent: nothing ran
    text = seen["text"]
    assert stories.HTML in text and stories.SCRIPT in text
    for sign in ("\x1b", "\x07", "\u202e"):
        assert sign not in text and sign not in seen["title"]
    assert "report\ufffdgpj.exe" in text


def test_charts_are_drawn(drawing):
    charts = drawing["charts"]
    assert len(charts) == 11  # eight tracks, one of them of an unknown group, and two scalars
    for chart in charts:
        assert chart["inked"] > 3000 and chart["colors"] > 5, chart
    assert len({chart["sum"] for chart in charts}) == len(charts)


def test_zoom_and_cursor_are_of_all_charts(drawing):
    zoom = drawing["zoom"]
    assert shown(zoom["all"]) == "0 s – 63.2 s" == shown(zoom["again"]) == shown(zoom["reset"])
    assert re.fullmatch(r"15\.\d s – 31\.\d s", shown(zoom["dragged"]))
    assert all(a["sum"] != b["sum"] for a, b in zip(zoom["before"], zoom["after"]))
    assert shown(zoom["summary"]).startswith("mean ") and re.fullmatch(r"\d+ % \(\d.* to \d.*\)", shown(zoom["value"]))
    assert re.fullmatch(r"31\.\d s, step \d+", shown(zoom["time"])) and zoom["follow"] == 1
    assert zoom["key"] not in (zoom["all"], zoom["dragged"])
    assert "GPU 0 busy: " in zoom["live"]
    assert zoom["step"] == zoom["kept"] != zoom["all"] and zoom["tracks"] == 12


def test_flame_graph_zooms_and_finds(seen):
    flame = seen["flame"]
    assert flame["frames"] > 30
    assert flame["before"] < 0.3 and flame["after"] > 0.99 and abs(flame["out"] - flame["before"]) < 0.01
    assert flame["gone"] == 0 and flame["below"].startswith("synchronize")
    assert shown(flame["found"]) == "36 % of the time" and flame["matches"] == 1
    assert shown(flame["busy"]) == "all: 2 min 12 s"  # of 171 s, without 39 s of waiting
    assert "main" in flame["info"] and "of all" in flame["info"]
    assert flame["sorted"] == "descending" and flame["firstProcess"].startswith("python3")


def test_a_newer_story_leaves_the_reader_where_he_is(seen):
    new = seen["update"]
    assert new["heading"] == "Something else holds it up" and "12.3 steps/s" in shown(new["speed"])
    assert new["open"] == 1 and new["events"] == 5 and new["headers"] == 1


def test_a_newer_story_is_drawn_where_the_reader_has_zoomed(drawing):
    new = drawing["update"]
    assert len(new["before"]) >= 4 and all(a["sum"] != b["sum"] for a, b in zip(new["before"][:4], new["after"]))
    assert new["range"] == drawing["zoom"]["step"]


def test_light_and_dark(seen):
    dark = seen["dark"]
    assert (dark["light"]["theme"], dark["dark"]["theme"], dark["asked"]) == ("light", "dark", "dark")
    assert dark["light"]["paper"] == "rgb(251, 250, 248)" and dark["dark"]["paper"] == "rgb(19, 20, 22)"
    assert all(a["sum"] != b["sum"] for a, b in zip(dark["lightCharts"], dark["darkCharts"]))
    assert dark["label"] == "Switch to light colours"


def test_on_paper_all_is_light_and_unfolded(seen):
    paper = seen["dark"]["print"]
    assert paper == {"bar": "none", "paper": "rgb(255, 255, 255)", "text": "rgb(28, 27, 26)", "folded": 0}
    assert seen["dark"]["foldedAgain"] > 3
    pdf = (seen["folder"] / "report.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and len(pdf) > 50_000


def test_copies_the_verdict_as_markdown(seen):
    assert seen["copied"] == stories.story()["markdown"]
    assert seen["said"] == "Copied the verdict as Markdown"


def test_a_narrow_window_does_not_scroll_sideways(seen):
    assert seen["narrow"]["width"] == 360 and seen["narrow"]["wide"] == []
    assert seen["width"] == 1280
    assert all(chart["inked"] > 1000 for chart in seen["narrow"]["charts"])


@pytest.mark.parametrize("view", ["light", "dark", "narrow", "bare"])
def test_axe_finds_nothing(seen, view):
    result = (seen if view == "light" else seen[view])["axe"]
    if result is None:
        pytest.skip("needs axe-core: tools/setup browser")
    assert result["passes"] > 20
    assert [v for v in result["found"] if v["impact"] in ("serious", "critical")] == []
    assert result["found"] == []


def test_what_is_not_known_is_absent(seen):
    text = shown(seen["bare"]["text"])
    assert "Too short to judge: only 0.2 s were seen; it takes 2" in text
    for words in ("stacks could not be read: permission denied", "no samples to draw", "no process of it was seen",
                  "how much it used could not be read"):
        assert words in text, words
    assert "NaN" not in text and "undefined" not in text and "null" not in text


def test_without_charts_there_is_a_picture(seen):
    assert seen["plain"]["picture"] and seen["real"]["picture"] == (not seen["canDraw"])
    assert seen["plain"]["charts"] == []


def test_a_real_record(seen, report):
    real = seen["real"]
    assert "The training thread loads the data itself" in real["text"] and "PhotoFolder.load" in real["text"]
    assert len(report.encode()) < LARGEST
    for words in ("NaN", "undefined"):
        assert words not in real["text"]


def test_charts_of_a_real_record(drawing):
    charts = drawing["real"]["charts"]
    assert len(charts) >= 4 and all(chart["inked"] > 1000 for chart in charts)

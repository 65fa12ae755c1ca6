# SPDX-License-Identifier: MIT
"""Readers of the two formats of stacks, written from their descriptions and not from our writers. Each gives
{(process and thread): {stack: seconds}}, a stack being a tuple of names, outermost first."""
import json
import math
import re
from collections import defaultdict

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
FILE_KEYS = {"$schema", "shared", "profiles"}
PROFILE_KEYS = {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}


def whole(v):
    return isinstance(v, int) and not isinstance(v, bool) and v >= 0


def number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)


def clean(text):
    """Nothing in a name can move a cursor or end a line."""
    return isinstance(text, str) and text != "" and not re.search(r"[\x00-\x1f\x7f-\x9f]", text)


def check_frame(frame):
    assert {"name"} <= set(frame) <= {"name", "file", "line", "col"}, frame
    assert clean(frame["name"]) and clean(frame.get("file", "-")), frame
    assert whole(frame.get("line", 1)) and frame.get("line", 1) > 0, frame


def read_profile(p, frames):
    assert set(p) == PROFILE_KEYS and p["type"] == "sampled" and p["unit"] == "seconds", p["name"]
    assert clean(p["name"]) and number(p["startValue"]) and number(p["endValue"])
    assert len(p["samples"]) == len(p["weights"]) > 0
    stacks = defaultdict(float)
    for sample, weight in zip(p["samples"], p["weights"]):
        assert sample and all(whole(i) and i < len(frames) for i in sample), sample
        assert number(weight) and weight > 0
        stacks[tuple(frames[i]["name"] for i in sample)] += weight
    assert math.isclose(sum(p["weights"]), p["endValue"] - p["startValue"], rel_tol=1e-9, abs_tol=1e-6)
    return dict(stacks)


def read_speedscope(text):
    v = json.loads(text)
    assert FILE_KEYS <= set(v) <= FILE_KEYS | {"name", "exporter", "activeProfileIndex"}, set(v)
    assert v["$schema"] == SCHEMA and set(v["shared"]) == {"frames"}
    assert whole(v.get("activeProfileIndex", 0)) and v.get("activeProfileIndex", 0) < len(v["profiles"])
    frames = v["shared"]["frames"]
    for frame in frames:
        check_frame(frame)
    assert len({json.dumps(f, sort_keys=True) for f in frames}) == len(frames), "a frame that is there twice"
    threads = defaultdict(lambda: defaultdict(float))
    for p in v["profiles"]:  # a number of a thread that was used again: two of one name
        for stack, weight in read_profile(p, frames).items():
            threads[p["name"]][stack] += weight
    return {name: dict(stacks) for name, stacks in threads.items()}


def read_collapsed(text):
    threads = defaultdict(lambda: defaultdict(float))
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        stack, count = line.rsplit(" ", 1)
        process, thread, *frames = stack.split(";")
        assert re.fullmatch(r"\d+", count) and frames and all(map(clean, [process, thread, *frames])), line
        # "decode (loader.py:7)": the name alone, as the other format has it
        names = tuple(re.sub(r"(?<=\S) \([^()]*(:\d+)?\)$", "", f) for f in frames)
        threads[f"{process}, {thread}"][names] += int(count) / 1e6
    return {name: dict(stacks) for name, stacks in threads.items()}


def seconds(threads):
    return sum(sum(stacks.values()) for stacks in threads.values())

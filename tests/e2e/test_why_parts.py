# SPDX-License-Identifier: MIT
"""`why` on a part of a run, and the facts behind it."""
from pathlib import Path

import pytest

STORED = Path(__file__).resolve().parents[2] / "zoo" / "stored"
RUN = STORED / "photos-inline.root.spot"


def test_a_part_is_judged_by_itself(spotter):
    whole, part = spotter.json("why", RUN), spotter.json("why", "--from", "3s", "--to", "12s", RUN)
    assert part["window"]["from_s"] >= 3 - 0.01 and part["window"]["to_s"] <= 12.01
    assert part["steps"]["count"] < whole["steps"]["count"]
    assert part["findings"][0]["cause"] == whole["findings"][0]["cause"]
    assert part["steps"]["rate_hz"] == pytest.approx(whole["steps"]["rate_hz"], rel=0.3)


def test_the_end_may_lie_behind_the_end(spotter):
    whole, part = spotter.json("why", RUN), spotter.json("why", "--to", "10h", RUN)
    assert part == whole


@pytest.mark.parametrize("words, said", [
    (["--from", "2h"], "there is nothing from"),
    (["--from", "9s", "--to", "4s"], "--to must be later than --from"),
    (["--from", "4s", "--to", "4s"], "--to must be later than --from"),
])
def test_parts_that_are_none(spotter, words, said):
    done = spotter("why", *words, RUN)
    assert done.code == 1 and said in done.err and not done.out


def test_of_a_process_there_is_no_part(spotter):
    done = spotter("why", "--from", "1s", "1")
    assert done.code == 1 and "--for" in done.err and not done.out


def test_every_fact_is_known_or_says_why_not(spotter):
    facts = spotter.json("why", "--facts", RUN)
    assert facts["schema"] == "spotter.facts/1"
    for name, fact in facts["facts"].items():
        if "value" in fact:
            assert fact["low"] <= fact["value"] <= fact["high"] and fact["unit"], name
            assert "why" not in fact
        else:
            assert fact["why"], name
    lines = spotter("why", "--facts", RUN, check=True).out.splitlines()
    assert [line.split()[0] for line in lines] == list(facts["facts"])


def test_evidence_can_be_looked_up(spotter):
    verdict, facts = spotter.json("why", RUN), spotter.json("why", "--facts", RUN)["facts"]
    for found in verdict["findings"]:
        for piece in found["evidence"]:
            if piece.get("metric") in facts:
                assert facts[piece["metric"]]["value"] == pytest.approx(piece["value"])

# SPDX-License-Identifier: MIT
"""remote_write into a real Prometheus and a real VictoriaMetrics, which are asked for it again: every value is there,
also of the time in which they were not. Skipped where they are not installed."""

import pytest

from push_world import Prometheus, Sender, VictoriaMetrics, now_ms, wait_for

pytestmark = pytest.mark.one_user


@pytest.fixture(params=[Prometheus, VictoriaMetrics])
def engine(request, tmp_path):
    folder = tmp_path / "engine"
    folder.mkdir()
    engine = request.param(folder)
    try:
        yield engine.start()
    finally:
        engine.done()


def times_of(engine, node="n1", series="0"):
    """{value: seconds} of one series, as the engine has it."""
    rows = engine.points(f'spotter_steps_total{{node="{node}",series="{series}"}}')
    return {value: t for _, points in rows for t, value in points}


def test_values_come_back_and_an_outage_costs_nothing(build, engine, tmp_path):
    sender = Sender(build, engine.write_url(), queue=tmp_path / "queue")
    begin = now_ms() - 30000
    try:
        sender.give(100, 1, begin)
        sender.until("the first", sent=100)
        rows = wait_for(lambda: len(r := engine.points("spotter_steps_total")) == 100 and r, "100 series")
        assert all(points == [(begin / 1000, 1)] for _, points in rows)
        assert {labels["series"] for labels, _ in rows} == {str(i) for i in range(100)}
        engine.stop()
        for k in range(2, 12):
            sender.give(100, k, begin + 1000 * k)
        wait_for(lambda: (s := sender.stats())["retries"] and s["queue_samples"] == 1000, "the queue")
        engine.start()
        sender.until("the rest", sent=1100, queue_samples=0)
        stats = sender.close()
        assert stats["refused"] == stats["queue_full"] == 0
        wanted = {1.0: begin / 1000, **{float(k): (begin + 1000 * k) / 1000 for k in range(2, 12)}}
        for series in ("0", "57", "99"):
            wait_for(lambda: times_of(engine, series=series) == wanted, f"all values of series {series}")
    finally:
        sender.kill()


def test_beyond_the_bound_the_oldest_are_dropped_and_counted(build, engine, tmp_path):
    sender = Sender(build, engine.write_url(), queue=tmp_path / "queue", size=1 << 20)
    begin = now_ms() - 120000
    try:
        engine.stop()
        for k in range(100):
            sender.give(3000, k + 0.123456789, begin + 1000 * k)
        wait_for(lambda: (s := sender.stats())["queue_samples"] + s["queue_full"] == 300000, "the queue")
        engine.start()
        stats = sender.until("what is left", queue_samples=0)
        lost = stats["queue_full"] // 3000
        assert lost > 0 and stats["sent"] + stats["queue_full"] == 300000 and stats["refused"] == 0
        wait_for(lambda: len(times_of(engine)) == 100 - lost, "what was left")
        assert {int(v) for v in times_of(engine)} == set(range(lost, 100))
    finally:
        sender.kill()

# SPDX-License-Identifier: MIT
"""check_encoders.py PUSH_AS: the samples of push_as.c as other readers find them in both formats; and whatever bytes
there are come back from snappy."""
import random
import subprocess
import sys

import wire

T, START = 1700000000123, 1699999999000
LONG = "spotter_step_duration_seconds"


def push_as(*words, **kwargs):
    return subprocess.run([sys.argv[1], *words], check=True, stdout=subprocess.PIPE, **kwargs).stdout


def check_snappy():
    chance = random.Random(8)
    words = [chance.randbytes(chance.randrange(1, 40)) for _ in range(50)]
    cases = [b"", b"a", b"ab" * 40, bytes(200000), chance.randbytes(70000), bytes(range(256)) * 300,
             b"".join(chance.choice(words) for _ in range(9000)), chance.randbytes(65536) * 2]
    for n in (3, 4, 59, 60, 61, 64, 67, 68, 69, 255, 256, 257, 65535, 65536, 65537):
        cases += [b"x" * n, chance.randbytes(n), b"abcd" + b"x" * n + b"abcd"]
    for case in cases:
        packed = push_as("snappy", input=case)
        assert wire.uncompress(packed) == case
        assert len(packed) <= len(case) + len(case) // 6 + 32
    text = b"".join(b'spotter_steps_total{node="node%d",run_id="20261116-120000"} ' % i for i in range(2000))
    assert len(push_as("snappy", input=text)) < len(text) / 5
    return len(cases)


def check_remote_write():
    rows = wire.read_remote_write(push_as("encode", "remote-write"))
    assert all(t == T for _, _, t in rows)
    flat = [(labels.pop("__name__"), labels, value) for labels, value, _ in rows]
    celsius = "spotter_gpu_temperature_celsius"
    assert flat[0] == (celsius, {"Zone": "z", "gpu": flat[0][1]["gpu"], "node": "n1"}, 61.5)
    # what is not known is not sent; nothing a process is called can harm a terminal
    assert flat[1] == (celsius, {"gpu": "2", "node": "evil??[2J?\u00e9"}, -0.25)
    assert flat[2:5] == [("spotter_steps_total", {"rank": "3"}, 4096), ("spotter_gpu_energy_joules_total", {"gpu": "0"}, 1e9),
                         ("spotter_run_info", {"name": "train"}, 1)]
    assert flat[5:] == [
        (LONG + "_bucket", {"le": "0.1", "rank": "0"}, 2), (LONG + "_bucket", {"le": "1", "rank": "0"}, 7),
        (LONG + "_bucket", {"le": "+Inf", "rank": "0"}, 9), (LONG + "_sum", {"rank": "0"}, 6.5),
        (LONG + "_count", {"rank": "0"}, 9),
        (LONG + "_bucket", {"le": "0.1", "rank": "1"}, 1), (LONG + "_bucket", {"le": "+Inf", "rank": "1"}, 1),
        (LONG + "_sum", {"rank": "1"}, 0.05), (LONG + "_count", {"rank": "1"}, 1)]
    return len(rows)


def check_otlp():
    who, metrics = wire.read_otlp(push_as("encode", "otlp"))
    assert who.pop("service.version") and who == {"service.name": "spotter", "host.name": "n1",
                                                  "spotter.run_id": "20261116-a"}
    heat = metrics["spotter.gpu_temperature"]
    assert heat.unit == "Cel" and [p.as_double for p in heat.gauge.data_points] == [61.5, -0.25]
    assert heat.gauge.data_points[0].time_unix_nano == T * 10**6
    assert not heat.gauge.data_points[0].HasField("start_time_unix_nano")
    assert wire.attributes(heat.gauge.data_points[1]) == {"gpu": "2", "node": "evil??[2J?\u00e9"}
    steps = metrics["spotter.steps"]
    assert steps.sum.is_monotonic and steps.sum.aggregation_temporality == 2 and not steps.HasField("unit")
    assert [(p.as_double, p.start_time_unix_nano) for p in steps.sum.data_points] == [(4096, START * 10**6)]
    assert metrics["spotter.gpu_energy"].unit == "J" and metrics["spotter.gpu_energy"].sum.data_points[0].as_double == 1e9
    assert metrics["spotter.run_info"].gauge.data_points[0].as_double == 1
    long = metrics["spotter.step_duration"]
    assert long.unit == "s" and long.histogram.aggregation_temporality == 2
    first, second = long.histogram.data_points
    assert (first.count, first.sum, list(first.bucket_counts), list(first.explicit_bounds)) == (9, 6.5, [2, 5, 2], [0.1, 1])
    assert (second.count, second.sum, list(second.bucket_counts), list(second.explicit_bounds)) == (1, 0.05, [1, 0], [0.1])
    assert wire.attributes(first) == {"rank": "0"} and wire.attributes(second) == {"rank": "1"}
    assert first.start_time_unix_nano == START * 10**6 and first.time_unix_nano == T * 10**6
    assert len(metrics) == 5


def main():
    said = f"{check_snappy()} inputs come back from snappy" + ("" if wire.snappy else " (python3-snappy is not installed)")
    if not wire.available():
        print(said + "; python3-protobuf is not installed")
        return
    print(f"{said}; {check_remote_write()} series by remote_write; OTLP holds")
    check_otlp()


main()

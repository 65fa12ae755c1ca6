# SPDX-License-Identifier: MIT
"""Whole fleets in a real engine: what tests/programs/fleet_feed and fleet_replay write goes in by remote_write."""
import http.client
import struct
import subprocess

from conftest import BUILD
from push_world import get_json, get_text, wait_for

HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy",
           "X-Prometheus-Remote-Write-Version": "0.1.0"}


def put(engine, stream):
    """Bodies of remote_write, each behind its length, in requests of one node at one moment. How many there were."""
    wire = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=120)
    bodies = 0
    try:
        while head := stream.read(4):
            body = stream.read(struct.unpack("<I", head)[0])
            wire.request("POST", "/api/v1/write", body, HEADERS)
            answer = wire.getresponse()
            assert answer.status in (200, 204), answer.read()[:500]
            answer.read()
            bodies += 1
    finally:
        wire.close()
    return bodies


def pour(engine, program, *words):
    """What one of tests/programs writes."""
    feed = subprocess.Popen([BUILD / "tests/programs" / program, *map(str, words)], stdout=subprocess.PIPE)
    try:
        bodies = put(engine, feed.stdout)
        assert feed.wait(60) == 0
    finally:
        feed.kill()
        feed.wait()
    return bodies


def asked(engine, path, **query):
    """The answer; patiently, as an engine may have little of the machine."""
    return wait_for(lambda: get_json(engine.url(path), **query), f"an answer from {path} to {query}")["data"]


def ask(engine, query, at):
    """[(labels, value)] at a moment."""
    return [(row["metric"], float(row["value"][1])) for row in asked(engine, "/api/v1/query", query=query, time=at)["result"]]


def settle(engine, query, value, at):
    """Waits till what was written can be asked for."""
    if engine.program == "victoria-metrics":
        get_text(engine.url("/internal/force_flush"))  # new series are found after some seconds otherwise
    wait_for(lambda: [v for _, v in ask(engine, query, at)] == [value], f"{query} to be {value}")

# SPDX-License-Identifier: MIT
"""Records cases, one at a time: DIR/CASE.L.spot with DIR/CASE.L.json beside it, which is written last and says that the
record is whole. L is `root` or `user`; further runs of a case are CASE.L.2 and so on."""
import json
import os
import shutil
import sys
import time
from pathlib import Path

from bar import AFTER, Bar
from inject import World, lacking


def target(folder, case, user, turn):
    stem = f"{case.name}.{'user' if user else 'root' if os.geteuid() == 0 else 'user'}"
    return folder / (stem if turn == 1 else f"{stem}.{turn}")


def pace_of(output):
    """What the program said about its speed, in its last JSON line."""
    for line in reversed(output.splitlines()):
        if line.startswith("{") and "steps" in line:
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def record(case, place, data, seconds, user):
    """None, or what went wrong."""
    with World(case, data, seconds, user=user) as world:
        file = world.folder / "run.spot"
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        # tests/programs/refuse: no perf_event_open, as in a container, so that the level is L2 whatever the machine allows
        level = [world.kit / "bin/refuse"] if user and (world.kit / "bin/refuse").exists() else []
        code, output = world.run([*level, world.spotter, "run", "-q", "-o", file, "--name", Path(case.program).stem, "--"])
        if not file.exists():
            return f"no record; exit {code}: {output.strip()[-300:]}"
        if code and case.kind != "death":
            return f"exit {code}: {output.strip()[-300:]}"
        if not code and case.kind == "death":
            return "the program should have ended badly and did not"
        shutil.copyfile(file, f"{place}.spot")
    # all that a later score needs to know of the table as it was, and no path of this machine
    about = {"case": case.name, "program": case.program, "flags": case.flags, "began": began, "seconds": seconds, "exit": code,
             "user": bool(user or os.geteuid()), "pace": pace_of(output)}
    Path(f"{place}.json").write_text(json.dumps(about, indent=1) + "\n")
    return None


def main(cases, folder, data, seconds, user, again=False, times=1):
    folder.mkdir(parents=True, exist_ok=True)
    todo = [(c, turn) for turn in range(1, times + 1) for c in cases]
    failed, done, began = [], 0, time.monotonic()
    for n, (case, turn) in enumerate(todo, 1):
        place = target(folder, case, user, turn)
        head = f"[{n}/{len(todo)}] {place.name}"
        if not again and Path(f"{place}.json").exists() and Path(f"{place}.spot").exists():
            print(f"{head}: there", flush=True)
            continue
        why = lacking(case)
        if why:
            print(f"{head}: skipped: {why}", flush=True)
            continue
        Path(f"{place}.json").unlink(missing_ok=True)
        start = time.monotonic()
        with Bar("recording", len(todo)) as bar:
            bar.began -= AFTER  # a case takes longer than that
            bar.tell(n - 1, case.name)
            wrong = record(case, place, data, seconds, user)
        done += 1
        size = os.path.getsize(f"{place}.spot") // 1024 if not wrong else 0
        left = (time.monotonic() - began) / done * (len(todo) - n)
        took = time.monotonic() - start
        print(f"{head}: {wrong or f'{size} KB'} ({took:.0f} s; {left / 60:.0f} min left at most)", flush=True)
        if wrong:
            failed.append(place.name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0

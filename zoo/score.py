# SPDX-License-Identifier: MIT
"""Scores stored records: what `spotter why` says, against what is true. Nothing is run again, so it takes seconds."""
import json
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cases
import parts
from bar import Bar
from inject import BUILD
from report import markdown
from stats import quantile, wilson

ALARM = 1.05   # a finding with at least this gain on a healthy run is a false alarm
NEAR = 2       # lines: a statement may go on over some


def spotter(*words):
    program = os.environ.get("ZOO_SPOTTER") or BUILD / "spotter"
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"spotter {' '.join(map(str, words))}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def named(verdict, n):
    return [f["cause"] for f in verdict.get("findings", [])[:n]]


def finding(verdict, causes, kind):
    """The first finding (for notes: also the first note) that names one of these causes."""
    rows = verdict.get("findings", []) + (verdict.get("notes", []) if kind in ("note", "death") else [])
    return next((f for f in rows if f["cause"] in causes), None)


def line_said(case, found):
    """Whether any line of what is said of it is a marked one: its own, its callers', or one of its evidence."""
    if located(case, found) is not False:
        return located(case, found)
    lines = [(file, int(line)) for e in (found or {}).get("evidence", ())
             for file, line in re.findall(r"([\w.-]+\.\w+):(\d+)", e["text"])]
    return any(points_at(case, {"file": file, "line": line}) for file, line in lines)


def located(case, found):
    """Whether it names a marked line, or as one that calls the hot one; None where no line is to be named."""
    if not case.marks:
        return None
    where = (found or {}).get("where") or {}
    return any(points_at(case, w) for w in (where, *where.get("callers", ())))


def points_at(case, where):
    file, line = Path(where.get("file") or "").name, where.get("line") or -99
    return any(Path(f).name == file and abs(n - line) <= NEAR for f, n in case.places())


def alarms_of(verdict):
    return [f for f in verdict.get("findings", []) if f.get("gain", {}).get("speedup", ALARM) >= ALARM]


def judge(case, verdict):
    """What there is to say about one record."""
    first, three = named(verdict, 1), named(verdict, 3)
    row = {"case": case.name, "level": verdict.get("level"), "said": first[0] if first else "nothing", "three": three,
           "true": list(case.causes), "notes": [n["cause"] for n in verdict.get("notes", [])]}
    if case.healthy:
        alarms = alarms_of(verdict)
        row.update(alarm=bool(alarms), said=alarms[0]["cause"] if alarms else "nothing")
        return row
    found = finding(verdict, case.causes, case.kind)
    if case.kind == "finding":
        row["top1"], row["top3"] = bool(first) and first[0] in case.causes, any(c in case.causes for c in three)
    else:  # no speed to gain: that it is named at all, and not below a wrong first finding
        row["top1"] = bool(found) and (not first or first[0] in case.causes or case.kind == "note")
        row["top3"] = bool(found)
    if not row["top1"] and not first:
        row["abstained"] = any(c["cause"] in case.causes for c in verdict.get("cannot_tell", []))
    row["place"], row["named"] = located(case, found), line_said(case, found)
    if case.also:
        row["all_named"] = all(c in three for c in case.also)
    if found and "gain" in found:
        row["gain"] = {k: found["gain"][k] for k in ("speedup", "low", "high") if k in found["gain"]}
    return row


def with_gain(case, row, gains):
    """Predicted against realised, where the realised interval is narrow enough to say."""
    real = gains.get(case.name)
    if not real or case.kind != "finding" or "speedup" not in row.get("gain", {}):
        return
    row["real"] = {k: real[k] for k in ("speedup", "low", "high", "narrow")}
    said, true = row["gain"]["speedup"], real["speedup"]
    row["error"] = abs(said - true) / true
    row["hit"] = real["low"] <= said <= real["high"] or row["error"] <= 0.05
    if "low" in row["gain"]:
        row["covered"] = row["gain"]["low"] <= true <= row["gain"]["high"]


def harmless(case, gains):
    """Its cure gains nothing here: on a machine that is fast enough one worker is no worker too few."""
    real = gains.get(case.name)
    return bool(real) and case.kind == "finding" and bool(case.causes) and real["narrow"] and real["high"] < ALARM


def records(folder):
    """[(stem, about)] of the whole records there."""
    found = []
    for about in sorted(folder.glob("*.json")):
        record = about.with_suffix(".spot")
        if record.exists():
            found.append((record, json.loads(about.read_text())))
    return found


def counted(rows, key):
    told = [r[key] for r in rows if r.get(key) is not None]
    return {"hits": sum(told), "of": len(told), "interval": [round(v, 4) for v in wilson(sum(told), len(told))]}


def gain_score(rows):
    told = [r for r in rows if "error" in r]
    narrow = [r for r in told if r["real"]["narrow"]]
    errors = [r["error"] for r in narrow]
    return {"scored": len(narrow), "wide": sorted({r["case"] for r in told if not r["real"]["narrow"]}),
            "median": quantile(errors, 0.5), "p90": quantile(errors, 0.9), "hit": counted(narrow, "hit"),
            "covered": counted(narrow, "covered"),
            "bias": quantile([r["gain"]["speedup"] / r["real"]["speedup"] - 1 for r in narrow], 0.5)}


def summary(table, rows):
    ill = [r for r in rows if not table[r["case"]].healthy and "quiet" not in r]
    healthy = [r for r in rows if table[r["case"]].healthy]
    full = [r for r in ill if "cores_full" in table[r["case"]].tags]
    stable = [r["stable_s"] for r in ill if r.get("stable_s") is not None]
    return {"records": len(rows), "alarms": counted(healthy, "alarm"), "harmless": counted(rows, "quiet"),
            "parts": counted([{"alarm": a} for r in healthy for a in r.get("parts", [])], "alarm"),
            "stable": {"of": len(stable), "median": quantile(stable, 0.5), "p90": quantile(stable, 0.9)},
            **{key: counted(ill, key) for key in ("top1", "top3", "place", "named", "abstained", "all_named")},
            "gain": gain_score([r for r in ill if r not in full]), "gain_cores_full": gain_score(full)}


def confusion(table, rows):
    """{true cause: {said: count}}, errors and hits; healthy is a row of its own."""
    matrix = {}
    for r in rows:
        case = table[r["case"]]
        if "quiet" in r:
            continue
        true = "healthy" if case.healthy else case.causes[0]
        said = true if r.get("top1") or case.healthy and not r["alarm"] else r["said"]
        matrix.setdefault(true, Counter())[said] += 1
    return {true: dict(said) for true, said in sorted(matrix.items())}


def peers_of(record, case, verdict):
    """{peer: row}: the same questions to the others. A peer names its advice; `peers.ADVICE` says what it means."""
    import peers
    facts = peers.facts(spotter, record, verdict)
    out = {}
    for name, rules in peers.RULES.items():
        said = rules(facts)
        meant = [peers.ADVICE.get(s, {s}) for s in said]
        row = {"said": said, "case": case.name}
        if case.healthy:
            row["alarm"] = bool(said)
        else:
            row["top1"] = bool(meant) and bool(meant[0] & set(case.causes))
            row["top3"] = any(m & set(case.causes) for m in meant[:3])
        out[name] = row
    return out


def with_parts(case, record, verdict, row):
    """What was said of parts of it; with healthy runs the whole counts as one of them."""
    if case.healthy:
        row["parts"] = [row["alarm"], *parts.alarms(spotter, record, verdict, lambda v: bool(alarms_of(v)))]
    elif case.kind == "finding":
        row["stable_s"] = parts.stable_after(spotter, record, verdict, lambda v: judge(case, v)["top1"])


def one(item, table, gains, peers, also_parts):
    record, about = item
    case = table.get(about["case"])
    if not case:
        return None
    verdict = spotter("why", "--json", record)
    row = judge(case, verdict)
    row["record"] = record.name
    row["user"] = about["user"]
    with_gain(case, row, gains)
    if harmless(case, gains):
        row["quiet"] = not alarms_of(verdict)
    if also_parts:
        with_parts(case, record, verdict, row)
    if peers:
        row["peers"] = peers_of(record, case, verdict)
    return row


def peers_score(table, rows):
    names = sorted({n for r in rows for n in r.get("peers", {})})
    out = {}
    for name in names:
        theirs = [r["peers"][name] for r in rows if name in r.get("peers", {}) and "quiet" not in r]
        ill = [r for r in theirs if "top1" in r]
        out[name] = {"top1": counted(ill, "top1"), "top3": counted(ill, "top3"),
                     "alarms": counted([r for r in theirs if table[r["case"]].healthy], "alarm")}
    return out


def score(folder, peers=True, also_parts=False):
    table = {c.name: c for c in cases.every()}
    file = folder / "gains.json"
    gains = json.loads(file.read_text()) if file.exists() else {}
    with ThreadPoolExecutor(2) as pool:
        stored = records(folder)
        scored = pool.map(lambda item: one(item, table, gains, peers, also_parts), stored)
        rows = [r for r in Bar("scoring", len(stored)).over(scored) if r]
    groups = {"all": rows}
    for level in sorted({str(r["level"]) for r in rows}):
        groups[level] = [r for r in rows if r["level"] == level]
    return {"schema": "spotter.zoo/1", "groups": {k: summary(table, v) for k, v in groups.items()},
            "confusion": confusion(table, rows), "peers": peers_score(table, rows), "rows": rows}


def main(folder, json_file=None, out=None, peers=True, also_parts=False):
    if not records(folder):
        print(f"zoo: no records in {folder}; `zoo record` makes them", file=sys.stderr)
        return 1
    result = score(folder, peers, also_parts)
    if json_file:
        json_file.write_text(json.dumps(result, indent=1) + "\n")
    text = markdown(result)
    if out:
        out.write_text(text)
    else:
        print(text)
    return 0

# SPDX-License-Identifier: MIT
"""A score as Markdown tables."""


def percent(value):
    return "-" if value is None else f"{100 * value:.0f} %"


def seconds(value):
    return "-" if value is None else f"{value:.0f} s"


def cell(count):
    """'12/14, 86 % (60-96)'"""
    if not count["of"]:
        return "-"
    low, high = count["interval"]
    return f"{count['hits']}/{count['of']}, {100 * count['hits'] / count['of']:.0f} % ({100 * low:.0f}-{100 * high:.0f})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, r)) + " |" for r in rows]) + "\n"


def scores(result):
    groups = result["groups"]
    wanted = [("records", lambda g: g["records"]),
              ("first finding is right", lambda g: cell(g["top1"])),
              ("among the first three", lambda g: cell(g["top3"])),
              ("false alarms on healthy runs", lambda g: cell(g["alarms"])),
              ("false alarms on healthy windows", lambda g: cell(g["parts"])),
              ("ailments whose cure gains nothing here (not scored): no finding", lambda g: cell(g["harmless"])),
              ("right for good after, median", lambda g: seconds(g["stable"]["median"])),
              ("right for good after, 90th percentile", lambda g: seconds(g["stable"]["p90"])),
              ("names the line", lambda g: cell(g["place"])),
              ("... or has it in its evidence", lambda g: cell(g["named"])),
              ("nothing found, and said 'cannot tell'", lambda g: cell(g["abstained"])),
              ("several causes: all named", lambda g: cell(g["all_named"])),
              ("gain: median error", lambda g: percent(g["gain"]["median"])),
              ("gain: 90th percentile", lambda g: percent(g["gain"]["p90"])),
              ("gain: bias", lambda g: percent(g["gain"]["bias"])),
              ("gain: within the realised interval or 5 %", lambda g: cell(g["gain"]["hit"])),
              ("gain: realised inside the predicted interval", lambda g: cell(g["gain"]["covered"])),
              ("gain with cores full: median error", lambda g: percent(g["gain_cores_full"]["median"])),
              ("gain with cores full: within", lambda g: cell(g["gain_cores_full"]["hit"]))]
    return table(["", *groups], [[name, *[of(g) for g in groups.values()]] for name, of in wanted])


def peers(result):
    ours = result["groups"]["all"]
    rows = [["Spotter", cell(ours["top1"]), cell(ours["top3"]), cell(ours["alarms"])]]
    rows += [[name, cell(p["top1"]), cell(p["top3"]), cell(p["alarms"])] for name, p in result["peers"].items()]
    return table(["rules of", "first is right", "among three", "false alarms"], rows)


def is_wrong(row):
    if "quiet" in row:  # nothing is to be found
        return not row["quiet"]
    return row.get("alarm") or row.get("top1") is False


def mistakes(result):
    wrong = [r for r in result["rows"] if is_wrong(r)]
    rows = [[r["record"], r["level"], " or ".join(r["true"]) or "healthy", r["said"], ", ".join(r["three"][1:] + r["notes"])]
            for r in wrong]
    return table(["record", "level", "true", "said", "also said"], rows)


def gains(result):
    rows = []
    for r in result["rows"]:
        if "error" in r:
            remark = "" if r["real"]["narrow"] else " (wide: not scored)"
            rows.append([r["record"], span(r["gain"]), span(r["real"]), percent(r["error"]) + remark])
    return table(["record", "predicted", "realised", "error"], rows)


def span(g):
    return f"{g['speedup']:.2f}" + (f" ({g['low']:.2f}-{g['high']:.2f})" if "low" in g else "")


def confusion(result):
    rows = []
    for true, said in result["confusion"].items():
        others = ", ".join(f"{k} {v}" for k, v in sorted(said.items(), key=lambda x: -x[1]) if k != true)
        rows.append([true, sum(said.values()), said.get(true, 0), others])
    return table(["true", "records", "right", "said instead"], rows)


def markdown(result):
    parts = ["# Score", scores(result)]
    if result["peers"]:
        parts += ["## The same records, other rules", peers(result)]
    parts += ["## What is said of what", confusion(result), "## Wrong", mistakes(result)]
    if any("error" in r for r in result["rows"]):
        parts += ["## Gains", gains(result)]
    return "\n".join(parts)

# SPDX-License-Identifier: MIT
"""What the cure really gains: the ill and the cured program run in turn, without Spotter, in pairs; the speed-up is the
median of the pairs' ratios with a bootstrap interval. Kept in DIR/gains.json; pairs already there are not run again."""
import json
import time

from inject import World, lacking
from record import pace_of
from stats import bootstrap

WIDE = 0.05  # half of a realised interval, as a share of the gain, beyond which a case is listed and not scored


def speed(case, data, seconds, cured):
    with World(case, data, seconds, cured=cured) as world:
        code, output = world.run()
    pace = pace_of(output)
    if code or not pace or "samples_per_s" not in pace:
        raise RuntimeError(f"exit {code}: {output.strip()[-300:]}")
    return pace["samples_per_s"]


def summary(pairs):
    """speedup, its interval, and whether it is narrow enough to score against."""
    middle, low, high = bootstrap([cured / ill for ill, cured in pairs])
    return {"speedup": round(middle, 4), "low": round(low, 4), "high": round(high, 4), "pairs": pairs,
            "narrow": len(pairs) >= 3 and (high - low) / 2 <= WIDE * middle}


def try_out(cases, data, seconds):
    """Runs each for some seconds, ill and cured, to see that it runs at all."""
    failed = 0
    for case in cases:
        why = lacking(case)
        for cured in (False, True) if case.curable and not why else (False,):
            line = why or ""
            if not why:
                with World(case, data, seconds, cured=cured) as world:
                    code, output = world.run()
                wrong = bool(code) != (case.kind == "death")
                failed += wrong
                line = f"exit {code}: {output.strip()[-400:]}" if wrong else json.dumps(pace_of(output))
            print(f"{case.name:24} {'cured' if cured else 'ill  ' if case.causes else 'fine '} {line}", flush=True)
    return 1 if failed else 0


def main(cases, folder, data, seconds, pairs, again=False):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "gains.json"
    gains = json.loads(file.read_text()) if file.exists() else {}
    curable = [c for c in cases if c.curable and c.kind in ("finding", "note") and c.causes]
    failed = 0
    for n, case in enumerate(curable, 1):
        head = f"[{n}/{len(curable)}] {case.name}"
        have = [] if again else gains.get(case.name, {}).get("pairs", [])
        why = lacking(case)
        if why or len(have) >= pairs:
            print(f"{head}: {f'skipped: {why}' if why else 'there'}", flush=True)
            continue
        start = time.monotonic()
        try:
            for turn in range(len(have), pairs):
                order = (False, True) if turn % 2 == 0 else (True, False)  # neither is always first
                measured = {cured: speed(case, data, seconds, cured) for cured in order}
                have.append([measured[False], measured[True]])
        except RuntimeError as error:
            print(f"{head}: {error}", flush=True)
            failed += 1
            continue
        gains[case.name] = summary(have)
        file.write_text(json.dumps(gains, indent=1) + "\n")
        g = gains[case.name]
        print(f"{head}: {g['speedup']:.2f}x ({g['low']:.2f}-{g['high']:.2f}){'' if g['narrow'] else ', wide'}"
              f" ({time.monotonic() - start:.0f} s)", flush=True)
    return 1 if failed else 0

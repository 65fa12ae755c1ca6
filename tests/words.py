# SPDX-License-Identifier: MIT
"""What tests/run prints of a suite: one line, then failures with their reason and the end of their output, then
why something was not run."""
import re
import sys

OUTPUT_LINES = 30  # of a failure: logs are cut
REASON_CHARS = 160

REASONS = re.compile("|".join((
    r"^E {3,}(\S.*)", r"^ERROR: (.*)", r"^\[  ERROR   \] --- (?!\[)(.*)", r"^\[   LINE   \] --- (.*)",
    r"(ERROR: \w+Sanitizer.*)", r"(WARNING: ThreadSanitizer.*)", r"(\S+: runtime error: .*)",
    r"^(\S+: (?:fatal )?error: .*)")), re.M)


def reason(out):
    """One line that says most: what an assertion, sanitizer or compiler said, or else the last line."""
    found = REASONS.search(out)
    lines = out.strip().splitlines()
    line = next(filter(None, found.groups())) if found else lines[-1] if lines else "no output"
    return line.strip()[:REASON_CHARS]


def excerpt(out):
    """The last lines; where the reason lies above them (a sanitizer's report ends in a table), also those that
    follow it."""
    lines = out.rstrip().splitlines()
    if len(lines) <= OUTPUT_LINES:
        return lines
    found = REASONS.search(out)
    at = out[:found.start()].count("\n") if found else len(lines)
    half = OUTPUT_LINES // 2
    head = lines[at:at + half] if at < len(lines) - OUTPUT_LINES else []
    tail = lines[-(half if head else OUTPUT_LINES):]
    return [*head, f"({len(lines) - len(head) - len(tail)} lines left out)", *tail]


def say(name, r, seconds):
    """One line a suite; below it what failed, and why something was not run."""
    skipped = f", {len(r.skips)} skipped" if r.skips else ""
    print(f"{name:16} {r.passed} passed, {len(r.failures)} failed{skipped} ({seconds:.0f} s)")
    for test, out in r.failures:
        print(f"  FAILED {test}: {reason(out)}", *(f"    {line}" for line in excerpt(out)), sep="\n")
    reasons = {}
    for test, why in r.skips:
        reasons.setdefault(why, []).append(test)
    for why, tests in reasons.items():
        tests = list(dict.fromkeys(tests))
        more = f" and {len(tests) - 3} more" if len(tests) > 3 else ""
        print(f"  skipped {', '.join(tests[:3])}{more}: {why}")
    sys.stdout.flush()

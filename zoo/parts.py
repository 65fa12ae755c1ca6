# SPDX-License-Identifier: MIT
"""Parts of a record: is a healthy run called healthy in every part of it, and how soon is the verdict on an ill one what it
stays? Each part is a `spotter why --from --to` of its own: what a user would have been told had the run ended there."""

PART_S = 8      # a part of a healthy run
STEP_S = 2      # how finely the end is moved for the time to a stable verdict
LEAST_S = 2     # no verdict is asked for over less


def spans(verdict):
    """The parts of a run that lie one behind the other, from the end of its start-up on."""
    begin, end = verdict["window"]["from_s"], verdict["window"]["to_s"]
    found = []
    while begin + PART_S <= end:
        found.append((begin, begin + PART_S))
        begin += PART_S
    return found


def alarms(ask, record, verdict, alarmed):
    """[bool] of the parts of a healthy run: was anything found in it?"""
    return [alarmed(ask("why", "--json", "--from", f"{a:.1f}s", "--to", f"{b:.1f}s", record)) for a, b in spans(verdict)]


def stable_after(ask, record, verdict, is_right):
    """Seconds of steady state after which the verdict was right and stayed so; None when it is not right at the end."""
    if not is_right(verdict):
        return None
    begin, end = verdict["window"]["from_s"], verdict["window"]["to_s"]
    at = end
    while at - STEP_S >= begin + LEAST_S:
        if not is_right(ask("why", "--json", "--to", f"{at - STEP_S:.1f}s", record)):
            break
        at -= STEP_S
    return round(at - begin, 1)

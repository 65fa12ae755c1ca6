#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A picture of a screen of `spotter top`, for the documents.

    tools/screen_svg.py SCREEN.txt > PICTURE.svg      SCREEN.txt: a dump in true colour, as in tests/golden/screens

Dots, bars and lines are drawn, so that the picture does not depend on the fonts of who looks at it."""
import re
import sys
from html import escape

WIDE, HIGH, SIZE = 8.4, 17.0, 14  # of a cell, and of the letters
PAPER, INK = "#16181d", "#d6d8dc"
DOTS = ((0, 0, 1), (0, 1, 2), (0, 2, 4), (1, 0, 8), (1, 1, 16), (1, 2, 32), (0, 3, 64), (1, 3, 128))
SPLIT = re.compile(r"\{([\d;]+)\}|(.)", re.S)


def look(numbers):
    """(colour, bold, reverse) of an SGR sequence in true colour."""
    parts = [int(n) for n in numbers.split(";")]
    colour, bold, reverse, i = INK, False, False, 0
    while i < len(parts):
        if parts[i] == 38 and parts[i + 1:i + 2] == [2]:
            colour = "#%02x%02x%02x" % tuple(parts[i + 2:i + 5])
            i += 4
        bold |= parts[i] == 1 and parts[i - 1:i] != [2]
        reverse |= parts[i] == 7
        i += 1
    return colour, bold, reverse


def cells(line):
    """[(column, character, look)]; wide characters take two columns."""
    at, now = 0, (INK, False, False)
    for sgr, char in SPLIT.findall(line):
        if sgr:
            now = look(sgr)
            continue
        yield at, char, now
        at += 2 if "\u1100" <= char <= "\ud7a3" and char > "\u2e80" else 1


def shape(char, x, y, colour):
    """The character as rectangles, or None when it is a letter."""
    def box(left, top, width, height):
        return f'<rect x="{x + left:.1f}" y="{y + top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
    code = ord(char)
    if code == 0x2501 or code == 0x2578:
        return box(0, HIGH / 2 - 1.5, WIDE / (1 if code == 0x2501 else 2), 3)
    if 0x2800 <= code <= 0x28FF:
        return "".join(box(1.2 + 4 * dx, 1.6 + 4.2 * dy, 2.2, 2.6) for dx, dy, bit in DOTS if code & bit)
    if 0x2581 <= code <= 0x2588:
        tall = HIGH * (code - 0x2580) / 8
        return box(0, HIGH - tall, WIDE if code == 0x2588 else WIDE - 1, tall)
    if 0x2589 <= code <= 0x258F:
        return box(0, 0, WIDE * (0x2590 - code) / 8, HIGH)
    if code == 0x2500:
        return box(0, HIGH / 2 - .5, WIDE, 1)
    if code == 0x2514:
        return box(WIDE / 2, 0, 1, HIGH / 2) + box(WIDE / 2, HIGH / 2 - .5, WIDE / 2, 1)
    return None


def merged(shapes):
    """Rectangles that stand side by side are one, dots of a full cell side by side are one filled with a pattern."""
    out = []
    for column, kind, colour, item in shapes:
        last = out[-1] if out else None
        if kind and last and last[1:3] == [kind, colour] and last[0] + last[3] == column:
            last[3] += 1
        else:
            out.append([column, kind, colour, 1, item])
    return out


def draw(text):
    lines = text.rstrip("\n").split("\n")
    columns = max((c for line in lines for c, _, _ in cells(line)), default=0) + 1
    width, height = columns * WIDE + 16, len(lines) * HIGH + 16
    out, tones = [], []
    for row, line in enumerate(lines):
        y, run, shapes = 8 + row * HIGH, None, []
        for column, char, (colour, bold, reverse) in [*cells(line), (columns, "\0", (None, False, False))]:
            x = 8 + column * WIDE
            if reverse:
                shapes.append((column, "back", colour, ""))
                colour = PAPER
            drawn = shape(char, x, y, colour) if colour else ""
            letter = drawn is None and char != " "
            if run and (not letter or run[1:3] != (colour, bold) or run[0] + len(run[3]) != column):
                start, ink, heavy, word = run
                weight = ' font-weight="bold"' if heavy else ""
                shapes.append((start, "", ink, f'<text x="{8 + start * WIDE:.1f}" y="{y + 13:.1f}" fill="{ink}"{weight} '
                               f'textLength="{len(word) * WIDE:.1f}">{escape(word)}</text>'))
                run = None
            if letter:
                run = (run[0], colour, bold, run[3] + char) if run else (column, colour, bold, char)
            elif drawn:
                kind = {"\u28ff": "dots", "\u2588": "back", "\u2500": "line", "\u2501": "bar"}.get(char, "")
                shapes.append((column, kind, colour, drawn))
        # What is behind comes first.
        for column, kind, colour, n, item in merged(sorted(shapes, key=lambda s: s[1] != "back")):
            high = {"back": (0, HIGH), "line": (HIGH / 2 - .5, 1), "bar": (HIGH / 2 - 1.5, 3), "dots": (0, HIGH)}.get(kind)
            if not high:
                out.append(item)
                continue
            if kind == "dots" and colour not in tones:
                tones.append(colour)
            fill = f"url(#d{tones.index(colour)})" if kind == "dots" else colour
            out.append(f'<rect x="{8 + column * WIDE:.1f}" y="{y + high[0]:.1f}" width="{n * WIDE:.1f}" '
                       f'height="{high[1]:.1f}" fill="{fill}"/>')
    patterns = [f'<pattern id="d{i}" x="8" y="8" width="{WIDE}" height="{HIGH}" patternUnits="userSpaceOnUse">'
                f'{shape(chr(0x28ff), 0, 0, tone)}</pattern>' for i, tone in enumerate(tones)]
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
                      'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
                      f'font-size="{SIZE}" role="img" aria-label="spotter top">',
                      "<defs>", *patterns, "</defs>", f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
                      *out, "</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        sys.stdout.write(draw(f.read()))

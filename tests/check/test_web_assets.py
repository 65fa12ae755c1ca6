# SPDX-License-Identifier: MIT
"""web/embed.py: what it puts into the program, and what it refuses."""
import base64
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]


@pytest.fixture
def web(tmp_path):
    (tmp_path / "web/app").mkdir(parents=True)
    (tmp_path / "causes").mkdir()
    (tmp_path / "causes/no_workers.md").write_text('# no_workers: \u00e9 "?" \\n\n')
    (tmp_path / "web/report.css").write_text("body { color: black }\n")
    (tmp_path / "web/app/20-b.js").write_text("two(1);\n")
    (tmp_path / "web/app/10-a.js").write_text("function two(x) {\n\treturn x + 1;\n}\n")
    return tmp_path


def embed(folder, *uplot):
    done = subprocess.run([sys.executable, TREE / "web/embed.py", folder / "out.c", folder / "out.d", folder / "web",
                           folder / "causes", *uplot], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr, (folder / "out.c").read_text() if (folder / "out.c").exists() else ""


def unquote(text):
    """The bytes of C string literals."""
    joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
    escape = {"n": "\n", "t": "\t"}
    return re.sub(r"\\([0-7]{3}|.)", lambda m: chr(int(m[1], 8)) if len(m[1]) == 3 else escape.get(m[1], m[1]),
                  joined).encode("latin-1")


def test_files_in_order_of_their_names(web):
    code, err, text = embed(web)
    assert code == 0, err
    body = re.search(r"asset_script = \{(.*?),\n\t(\d+), \"([^\"]+)\",\n\};", text, re.S)
    script = unquote(body[1])
    assert script == b'(function () {\n"use strict";\nfunction two(x) {\n\treturn x + 1;\n}\ntwo(1);\n}());\n'
    assert int(body[2]) == len(script) and body[3] == base64.b64encode(hashlib.sha256(script).digest()).decode()
    assert "asset_has_charts = false" in text
    assert (web / "causes/no_workers.md").read_bytes() in unquote(text)
    needs = (web / "out.d").read_text().split(": ")[1].split()
    assert str(web / "web/app") in needs and str(web / "web/app/10-a.js") in needs


def test_charts_where_they_are(web):
    place = web / "npm/uplot"
    (place / "dist").mkdir(parents=True)
    (place / "LICENSE").write_text("as you like */\n")
    (place / "dist/uPlot.min.css").write_text(".u{}")
    assert "asset_has_charts = false" in embed(web, web / "nowhere", place)[2]
    (place / "dist/uPlot.iife.min.js").write_text("var uPlot=1;")
    text = embed(web, web / "nowhere", place)[2]
    assert "asset_has_charts = true" in text
    assert b"/*! uPlot\nas you like * /\n*/\nvar uPlot=1;\n(function" in unquote(text)  # with the terms it comes under


def test_the_dashboards_own(web):
    """A script of its own, and a style that has the report's in it; without it both are there, and empty."""
    def asset(text, name):
        return unquote(re.search(name + r" = \{(.*?),\n\t(\d+), \"([^\"]+)\",\n\};", text, re.S)[1])
    bare = embed(web)[2]
    assert asset(bare, "asset_serve") == b'(function () {\n"use strict";\n}());\n'
    assert asset(bare, "asset_serve_style") == asset(bare, "asset_style")
    (web / "web/serve").mkdir()
    (web / "web/serve/10-x.js").write_text("const two = 2;\n")  # the report's script has a `two` of its own
    (web / "web/serve/serve.css").write_text("b {}\n")
    text = embed(web)[2]
    assert b"const two = 2;" in asset(text, "asset_serve") and b"const two = 2;" not in asset(text, "asset_script")
    assert asset(text, "asset_serve_style") == asset(text, "asset_style") + b"b {}\n"
    assert str(web / "web/serve/10-x.js") in (web / "out.d").read_text()


@pytest.mark.parametrize("name, text, words", [
    ("30-c.js", "const x = '</script>';\n", "</script"),
    ("30-c.js", "const x = '<!--';\n", "<!--"),
    ("30-c.js", "const two = 3;\n", "both declare 'two'"),
    ("30-c.js", "import { a } from './b.js';\n", "without import and export"),
    ("../report.css", "a { content: '</style>' }\n", "</style"),
])
def test_what_it_refuses(web, name, text, words):
    (web / "web/app" / name).write_text(text)
    code, err, _ = embed(web)
    assert code == 1 and words in err

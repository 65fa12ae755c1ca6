#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""web/embed.py OUT.c DEPFILE WEB CAUSES [UPLOT...]: the pages' style, script and texts as a C file, so that the
program carries them along (src/web/assets.h declares it).

    WEB      report.css and app/*.js: plain scripts in the order of their names, put together in one function;
             serve/*.js, serve/serve.css, the dashboard's own: the same in a second one, and behind the style
    CAUSES   pages about causes, ID.md
    UPLOT    folders in which uPlot may be (npm's node_modules/uplot): the first that has it; none is no error

A page allows its own script and style by their SHA-256 (Content-Security-Policy), so whatever this writes is
what runs, byte for byte."""
import base64
import hashlib
import re
import sys
from pathlib import Path

DECLARED = re.compile(r"^(?:async )?(?:function\*?|const|let|class) (?:\{ ?)?(\w+)", re.M)


def fail(text):
    sys.exit(f"web/embed.py: {text}")


def app(folder):
    """All files of the page as one script. They share a scope: a name that two of them have would be an error that
    only a browser sees."""
    files = sorted(folder.glob("*.js"))
    owner, parts = {}, []
    for file in files:
        text = file.read_text(encoding="utf-8")
        for name in DECLARED.findall(text):
            if owner.setdefault(name, file) != file:
                fail(f"{file.name} and {owner[name].name} both declare '{name}'")
        if re.search(r"^(import|export)\b", text, re.M):
            fail(f"{file.name}: these are plain scripts, without import and export")
        parts.append(text)
    return files, '(function () {\n"use strict";\n' + "".join(parts) + "}());\n"


def charts(folders):
    """uPlot's (files, script, style) with the licence it comes with, or nothing."""
    for folder in folders:
        files = [folder / "dist/uPlot.iife.min.js", folder / "dist/uPlot.min.css", folder / "LICENSE"]
        if all(f.is_file() for f in files):
            script, style, terms = (f.read_text(encoding="utf-8") for f in files)
            return files, f"/*! uPlot\n{terms.replace('*/', '* /')}*/\n{script}\n", style + "\n"
    return [], "", ""


def c_text(data):
    """Bytes as a C string literal in lines. Octal escapes end after three digits, so nothing runs into them."""
    plain = {ord("\n"): "\\n", ord("\t"): "\\t", ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
    lines, line = [], ""
    for byte in data:
        line += plain.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
        if len(line) > 100 or byte == 10:
            lines.append(line)
            line = ""
    return "\n\t".join(f'"{part}"' for part in [*lines, line])


def asset(name, text):
    data = text.encode()
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    return f"const struct asset {name} = {{\n\t{c_text(data)},\n\t{len(data)}, \"{digest}\",\n}};\n\n"


def main():
    out, depfile, web, causes, *uplot = map(Path, sys.argv[1:])
    chart_files, chart_script, chart_style = charts(uplot)
    app_files, own = app(web / "app")
    serve_files, serve = app(web / "serve")
    style_file = web / "report.css"
    serve_style = web / "serve/serve.css"
    script = chart_script + own
    style = chart_style + (style_file.read_text(encoding="utf-8") if style_file.is_file() else "")
    # HTML ends these elements at the first thing that looks like their end, whatever a script thinks of it.
    for what, text, end in (("script", script, r"</script|<!--|<script"), ("style", style, r"</style|<!--")):
        if re.search(end, text, re.I):
            fail(f"the {what} contains '{re.search(end, text, re.I)[0]}', which would end or hide it")
    pages = sorted(p for p in causes.glob("*.md") if p.stem.islower())
    rows = "".join(f"\t{{ \"{p.stem}\",\n\t{c_text(p.read_bytes())} }},\n" for p in pages)
    text = ("/* Made by web/embed.py. */\n#include \"web/assets.h\"\n\n"
            + asset("asset_script", script) + asset("asset_style", style) + asset("asset_serve", serve)
            + asset("asset_serve_style", style + (serve_style.read_text(encoding="utf-8") if serve_style.is_file() else ""))
            + f"const bool asset_has_charts = {'true' if chart_script else 'false'};\n\n"
            + f"const struct cause_page cause_pages[] = {{\n{rows}\t{{ NULL, NULL }},\n}};\n")
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.write_text(text, encoding="utf-8")
    # Folders are in it, too: their time changes when a file comes or goes.
    needs = [web, web / "app", causes, *app_files, *serve_files, *chart_files, *pages,
             *filter(Path.exists, [style_file, web / "serve", serve_style])]
    depfile.write_text(f"{out}: " + " ".join(str(n).replace(" ", "\\ ") for n in needs) + "\n")


if __name__ == "__main__":
    main()

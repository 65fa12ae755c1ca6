# SPDX-License-Identifier: MIT
"""Blocks in a stack of many kinds of frames, and a thread of it prints what Python itself sees:

    T <native thread id>
    F <qualified name>\t<file>\t<line>       innermost first
    .
"""
import asyncio
import sys
import threading
import time


class Blocked:
    def __init__(self, depth):
        self.depth = depth
        self.enter(depth)

    def enter(self, n):
        if n:
            return self.enter(
                n
                - 1,
            )
        return self.method()

    def method(self):
        def nested(value):
            return [x for x in pipeline(value)]
        return nested(3)


def pipeline(n):
    for x in (y + 1 for y in source(n)):
        yield x


def source(n):
    yield from inner_source(n)


def inner_source(n):
    yield (lambda:
           größe(n))()


def größe(n):
    return 函数(n)


def 函数(n):
    return 𐌰𐌱(n)


def 𐌰𐌱(n):
    class Late:
        async def outer(self):
            await self.inner()

        async def inner(self):
            with_keywords(n,
                          depth=1)
    asyncio.new_event_loop().run_until_complete(Late().outer())


def with_keywords(n, *, depth):
    time.sleep(
        1000
    )


def deep(n):
    if n:
        deep(n - 1)
    else:
        threading.Event().wait()


def tell():
    time.sleep(0.15)
    own = threading.get_ident()
    native = {t.ident: t.native_id for t in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident == own or ident not in native:
            continue
        print(f"T {native[ident]}")
        while frame:
            code = frame.f_code
            name = getattr(code, "co_qualname", code.co_name)
            print(f"F {name}\t{code.co_filename}\t{frame.f_lineno}")
            frame = frame.f_back
    print(".", flush=True)
    sys.stdin.read()


sys.stdout.reconfigure(encoding="utf-8")
threading.Thread(target=deep, args=(int(sys.argv[1]),), daemon=True).start()
threading.Thread(target=tell, daemon=True).start()
Blocked(4)

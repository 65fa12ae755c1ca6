# SPDX-License-Identifier: MIT
"""Stacks that change all the time, in which every function has exactly one legal caller: KIND_N_D is
called by KIND_N_(D-1), depth 0 by loop, loop by the module. A sampler that stitches two stacks
together shows a caller that cannot be.

    oracle.py chain|gen|deep|rec|coro|async MICROSECONDS     time for which one stack stands

rec: three functions that call each other in a circle, to a depth that is another for each N (a stack of
set N down to spin has RECURSION + N + 1 of them). async: tasks that take turns at every leaf.
"""
import asyncio
import sys
import time

KIND, PERIOD = sys.argv[1], int(sys.argv[2])
DEPTH = {"chain": 18, "gen": 6, "deep": 40, "rec": 2, "coro": 8, "async": 8}[KIND]
SETS = 5
RECURSION = 30
spins = 1


def spin():
    for _ in range(spins):
        pass


# The call stands in the line behind `def`, or in the one behind that: the test looks.
FORMS = {
    "chain": "def {name}():\n\treturn {callee}()\n",
    "deep": "def {name}():\n\treturn {callee}()\n",
    "rec": "def {name}(n):\n\treturn {callee}(n - 1) if n else spin()\n",
    "gen": "def {name}():\n\tfor x in {callee}(): yield x\n",
    "coro": "async def {name}():\n\tawait {callee}()\n",
    "async": "async def {name}():\n\tawait {callee}()\n",
}
LEAVES = {
    "chain": "def {name}():\n\tspin()\n",
    "deep": "def {name}():\n\tspin()\n",
    "rec": "def {name}(n):\n\treturn {first}(n - 1) if n else spin()\n",
    "gen": "def {name}():\n\tyield spin()\n",
    "coro": "async def {name}():\n\tspin()\n",
    "async": "async def {name}():\n\tspin(); await asyncio.sleep(0)\n",
}
text = ""
for n in range(SETS):
    for d in range(DEPTH):
        text += FORMS[KIND].format(name=f"{KIND}_{n}_{d}", callee=f"{KIND}_{n}_{d + 1}")
    text += LEAVES[KIND].format(name=f"{KIND}_{n}_{DEPTH}", first=f"{KIND}_{n}_0")
exec(compile(text, "<oracle>", "exec"))


def loop():
    tops = [globals()[f"{KIND}_{n}_0"] for n in range(SETS)]
    while True:
        for n, top in enumerate(tops):
            if KIND == "gen":
                for _ in top():
                    pass
            elif KIND == "rec":
                top(RECURSION + n)
            else:
                top()


async def coro_loop():
    tops = [globals()[f"{KIND}_{n}_0"] for n in range(SETS)]
    while True:
        for top in tops:
            await top()


async def task_loop(top):
    while True:
        await top()


async def all_tasks():
    await asyncio.gather(*[task_loop(globals()[f"{KIND}_{n}_0"]) for n in range(SETS)])


def seconds():
    start = time.perf_counter()
    spin()
    return time.perf_counter() - start


spins = 5000
spins = max(1, int(spins * PERIOD * 1e-6 / min(seconds() for _ in range(20))))
print("ready", flush=True)
if KIND in ("coro", "async"):
    asyncio.new_event_loop().run_until_complete(coro_loop() if KIND == "coro" else all_tasks())
else:
    loop()

# SPDX-License-Identifier: MIT
"""Stacks that change all the time, in which every function has exactly one legal caller: KIND_N_D is
called by KIND_N_(D-1), depth 0 by loop, loop by the module. A sampler that stitches two stacks
together shows a caller that cannot be.

    oracle.py chain|gen|rec|coro MICROSECONDS     time for which one stack stands
"""
import asyncio
import sys
import time

KIND, PERIOD = sys.argv[1], int(sys.argv[2])
DEPTH = {"chain": 18, "gen": 6, "rec": 40, "coro": 8}[KIND]
SETS = 5
spins = 1


def spin():
    for _ in range(spins):
        pass


# The call stands in the line behind `def`, or in the one behind that: the test looks.
FORMS = {
    "chain": "def {name}():\n\treturn {callee}()\n",
    "rec": "def {name}():\n\treturn {callee}()\n",
    "gen": "def {name}():\n\tfor x in {callee}(): yield x\n",
    "coro": "async def {name}():\n\tawait {callee}()\n",
}
LEAVES = {
    "chain": "def {name}():\n\tspin()\n",
    "rec": "def {name}():\n\tspin()\n",
    "gen": "def {name}():\n\tyield spin()\n",
    "coro": "async def {name}():\n\tspin()\n",
}
text = ""
for n in range(SETS):
    for d in range(DEPTH):
        text += FORMS[KIND].format(name=f"{KIND}_{n}_{d}", callee=f"{KIND}_{n}_{d + 1}")
    text += LEAVES[KIND].format(name=f"{KIND}_{n}_{DEPTH}")
exec(compile(text, "<oracle>", "exec"))


def loop():
    tops = [globals()[f"{KIND}_{n}_0"] for n in range(SETS)]
    while True:
        for top in tops:
            if KIND == "gen":
                for _ in top():
                    pass
            else:
                top()


async def coro_loop():
    tops = [globals()[f"{KIND}_{n}_0"] for n in range(SETS)]
    while True:
        for top in tops:
            await top()


def seconds():
    start = time.perf_counter()
    spin()
    return time.perf_counter() - start


spins = 5000
spins = max(1, int(spins * PERIOD * 1e-6 / min(seconds() for _ in range(20))))
print("ready", flush=True)
if KIND == "coro":
    asyncio.new_event_loop().run_until_complete(coro_loop())
else:
    loop()

/* SPDX-License-Identifier: MIT
 *
 * Loading ahead by hand: what a turn of the loop makes for the next one; and what else is carried from turn to turn.
 */
#include "does_made.h"

static void loads_ahead(void **state)
{
	(void)state;
	expect("upcoming = self.features.next()\n"
	       "while more:\n"
	       "    x, y = upcoming\n"
	       "    loss = fit(x, y)\n"
	       "    loss.backward()\n"
	       "    upcoming = self.features.next()\n",
	       "ahead 6-6");
	expect("images, target = prefetcher.next()\n"
	       "while images is not None:\n"
	       "    loss = criterion(model(images), target)\n"
	       "    loss.backward()\n"
	       "    optimizer.step()\n"
	       "    images, target = prefetcher.next()\n",
	       "ahead 6-6");
	expect("for i in range(len(order)):\n"
	       "    if batch is None:\n"
	       "        break\n"
	       "    loss = fit(batch)\n"
	       "    loss.backward()\n"
	       "    batch = prepare(order[i + 1])\n",
	       "ahead 6-6");
}

static void carries_something_else(void **state)
{
	(void)state;
	/* made in the same turn, before it is used */
	expect("for i in range(n):\n"
	       "    x = prepare(i)\n"
	       "    loss = fit(x)\n"
	       "    loss.backward()\n"
	       "    x = crop(i)\n",
	       "");
	/* of what this turn computed, of itself, of what the model said */
	expect("while True:\n"
	       "    out = run(x)\n"
	       "    out.sum().backward()\n"
	       "    x = follow(out)\n",
	       "");
	expect("while True:\n"
	       "    fit(x).backward()\n"
	       "    x = shift(x)\n",
	       "");
	expect("while True:\n"
	       "    obs = play(move)\n"
	       "    fit(obs).backward()\n"
	       "    move = choose(obs)\n",
	       "");
	expect("while True:\n"
	       "    fit(obs).backward()\n"
	       "    obs, reward = env.step(4)\n",
	       "");
	/* only asked for, and in a loop that does not learn */
	expect("while x is not None:\n"
	       "    if x:\n"
	       "        pass\n"
	       "    y.backward()\n"
	       "    x = reader.next()\n",
	       "");
	expect("while x is not None:\n"
	       "    show(x)\n"
	       "    x = reader.next()\n",
	       "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_ahead),
		cmocka_unit_test(carries_something_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

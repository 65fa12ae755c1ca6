/* SPDX-License-Identifier: MIT
 *
 * Loops that learn by calling a function of the file that trains by hand, and what is asked in them now and then.
 */
#include "does_made.h"

#define LEARN                                           \
	"def learn(inner, outer, rows, g, lr):\n"       \
	"    inner.index_add_(0, rows, g, alpha=-lr)\n" \
	"    outer.index_add_(0, rows, g, alpha=-lr)\n"

static void rates_by_keyword(void **state)
{
	(void)state;
	expect(LEARN, "train 1-3");
	/* an average of weights */
	expect("def follow(a, b, rate):\n"
	       "    a.mul_(rate).add_(b, alpha=1 - rate)\n",
	       "");
}

static void evaluates_now_and_then(void **state)
{
	(void)state;
	expect(LEARN "for step in range(steps):\n"
		     "    learn(inner, outer, rows[step], g, lr)\n"
		     "    if step % 500 == 0:\n"
		     "        area = gini(score(inner, everyone), truth)\n"
		     "        print(step, area)\n",
	       "train 1-3|evaluate 7-7");
	/* behind each pass */
	expect("for epoch in range(9):\n"
	       "    for x, y in batches:\n"
	       "        loss(net(x), y).backward()\n"
	       "        opt.step()\n"
	       "    acc = accuracy(net, self.images, self.labels)\n"
	       "    print(acc)\n",
	       "evaluate 5-5");
}

static void watches_instead(void **state)
{
	(void)state;
	/* in each step */
	expect(LEARN "for step in range(steps):\n"
		     "    learn(inner, outer, rows[step], g, lr)\n"
		     "    area = gini(score(inner, everyone), truth)\n"
		     "    print(step, area)\n",
	       "train 1-3|watch 6-6");
	/* of the model, or of what the loop has made */
	expect("for step, (x, y) in enumerate(batches):\n"
	       "    loss(net(x), y).backward()\n"
	       "    if step % 20 == 0:\n"
	       "        norms = lengths(net.parameters())\n"
	       "        hits = count(x, y)\n"
	       "        print(norms, hits)\n",
	       "watch 4-4|watch 5-5");
}

/* A name that dictionaries have as well says nothing; a definition is no call. */
static void names_that_say_nothing(void **state)
{
	(void)state;
	expect("def update(w, g, lr):\n"
	       "    w.add_(g, alpha=-lr)\n"
	       "for x in parts:\n"
	       "    seen.update(x)\n"
	       "    if x % 2 == 0:\n"
	       "        area = gini(everyone)\n"
	       "        print(area)\n",
	       "train 1-2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_by_keyword),
		cmocka_unit_test(evaluates_now_and_then),
		cmocka_unit_test(watches_instead),
		cmocka_unit_test(names_that_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Evaluations that switch no gradients off, as there are none: answers of a model in arrays against what is true.
 */
#include "does_made.h"

static void counts_hits(void **state)
{
	(void)state;
	expect("class Net:\n"
	       "    def accuracy(self, x, y, batch):\n"
	       "        hits = 0\n"
	       "        for k in range(0, len(x), batch):\n"
	       "            out = self.forward(x[k:k + batch])\n"
	       "            hits += int((out.argmax(1) == y[k:k + batch]).sum())\n"
	       "        return hits / len(x)\n",
	       "evaluate 2-7");
}

static void learns_meanwhile(void **state)
{
	(void)state;
	/* weights change in it, or in what it calls */
	expect("def epoch_of(net, x, y, lr):\n"
	       "    hits = 0\n"
	       "    for k in range(0, len(x), 64):\n"
	       "        out = net.forward(x[k:k + 64])\n"
	       "        hits += (out.argmax(1) == y[k:k + 64]).sum()\n"
	       "        net.backward(out - hot(y[k:k + 64]))\n"
	       "    return hits / len(x)\n",
	       "");
	expect("def turn(net, x, y):\n"
	       "    hits = 0\n"
	       "    for k in range(0, len(x), 64):\n"
	       "        out = net.forward(x[k:k + 64])\n"
	       "        hits += (np.argmax(out, 1) == y[k:k + 64]).sum()\n"
	       "        net.update(0.1)\n"
	       "    return hits\n",
	       "");
}

/* The half of a training that goes forwards, where another makes the gradients. */
static void goes_forwards(void **state)
{
	(void)state;
	expect("import torch\n"
	       "def losses(model, batches):\n"
	       "    total, hits = 0, 0\n"
	       "    for x, y in batches:\n"
	       "        out = model(x)\n"
	       "        total = total + far(out, y)\n"
	       "        hits += (out.argmax(1) == y).sum()\n"
	       "    return total, hits\n",
	       "");
	/* how fit one of many is, which is what is learnt from; a perceptron, without a rate */
	expect("def fitness(genome, batches):\n"
	       "    hits = n = 0\n"
	       "    for x, y in batches:\n"
	       "        hits += (forward(genome, x).argmax(1) == y).sum()\n"
	       "        n += len(y)\n"
	       "    return hits / n\n",
	       "");
	expect("def sweep(self, xs, ys):\n"
	       "    right = 0\n"
	       "    for x, y in zip(xs, ys):\n"
	       "        s = self.forward(x)\n"
	       "        right += int(np.argmax(s) == y)\n"
	       "        self.w[y] += x\n"
	       "        self.w[s.argmax()] -= x\n"
	       "    return right\n",
	       "elements 3-7");
}

static void asks_nobody(void **state)
{
	(void)state;
	/* a metric of answers that are there; and single elements */
	expect("def accuracy(out, y):\n"
	       "    hits = 0\n"
	       "    for row, true in zip(out, y):\n"
	       "        hits += row.argmax() == true\n"
	       "    return hits\n",
	       "elements 3-4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_hits),
		cmocka_unit_test(learns_meanwhile),
		cmocka_unit_test(goes_forwards),
		cmocka_unit_test(asks_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

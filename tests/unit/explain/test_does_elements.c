/* SPDX-License-Identifier: MIT
 *
 * Loops that go over single elements, by their text; and loops whose steps are more than that.
 */
#include "does_made.h"

static void goes_over_elements(void **state)
{
	(void)state;
	expect("def step_each(self, u):\n"
	       "    r = np.empty(len(u))\n"
	       "    for k in range(len(u)):\n"
	       "        th, w = self.s[k]\n"
	       "        w2 = min(8.0, w + u[k] * 0.05)\n"
	       "        self.s[k, 0] = th + w2\n"
	       "        r[k] = -(w2 ** 2)\n"
	       "    return r\n",
	       "elements 3-7");
	/* a nest is told once */
	expect("for i in range(h):\n"
	       "    for j in range(w):\n"
	       "        out[i][j] = (x[i][j] - lo) / span\n",
	       "elements 1-3");
	expect("total = 0\n"
	       "for a, b in zip(p, q):\n"
	       "    total += a * b\n",
	       "elements 2-3");
	expect("for j in range(len(x)):\n"
	       "    acc -= w[j] * x[j]\n",
	       "elements 1-2");
	expect("for k in range(len(x)):\n"
	       "    mixed.append(images[k] * gains[k] + offsets[k])\n",
	       "elements 1-2");
	expect("for j in range(len(x)):\n"
	       "    (a, b) = x[j], y[j]\n"
	       "    if a <=(b): z[j] = a\n",
	       "elements 1-3");
	/* single ones are held against something: an array cannot be */
	expect("def peaks(lead, level):\n"
	       "    found = []\n"
	       "    for i in range(1, len(lead) - 1):\n"
	       "        if lead[i] > level and (lead[i] >= lead[i - 1]):\n"
	       "            found.append(i)\n"
	       "    return np.array(found)\n",
	       "elements 3-5");
	expect("for a, b in zip(x, y):\n"
	       "    if a < b:\n"
	       "        n = n + a\n",
	       "elements 1-3");
}

static void goes_over_more_than_elements(void **state)
{
	(void)state;
	/* slices, products of matrices, steps that learn, files */
	expect("for i in range(0, n, 32):\n"
	       "    out[i:i + 32] = f(x[i:i + 32])\n",
	       "");
	expect("for k in range(n):\n"
	       "    parts.append(x[k:k + 9])\n",
	       "");
	/* parts of a model, each called; and what is called for each may be anything */
	expect("for i in range(len(feats)):\n"
	       "    outs.append(self.lateral[i](feats[i]))\n",
	       "");
	expect("for i in range(len(feats)):\n"
	       "    outs.append(self.head(feats[i]))\n",
	       "");
	expect("for t in range(steps):\n"
	       "    h[t] = np.tanh(x[t] @ w)\n",
	       "");
	expect("for i in range(steps):\n"
	       "    losses[i] = loss(net(xs[i]), ys[i])\n",
	       "");
	expect("for i in range(n):\n"
	       "    rows[i] = np.load(paths[i])\n",
	       "");
	/* it writes nothing that has its index */
	expect("for epoch in range(9):\n"
	       "    rate = 0.1 / (1 + epoch)\n"
	       "    fit(x, rate)\n",
	       "");
	expect("for name in names:\n"
	       "    table[name] = 1\n",
	       "");
	/* the last of many statements, which are about whole arrays */
	expect("for it in range(iters):\n"
	       "    d = ((x - c) ** 2).sum(-1)\n"
	       "    lab = d.argmin(1)\n"
	       "    inertia[it] = d.min(1).sum()\n",
	       "");
	/* an optimiser: each element is a matrix */
	expect("def update(self, gW):\n"
	       "    for i in range(len(self.W)):\n"
	       "        self.v[i] = mu * self.v[i] - eta * gW[i]\n"
	       "        self.W[i] += self.v[i]\n"
	       "    h = x @ self.W[0]\n",
	       "");
	expect("for i, (p, g) in enumerate(zip(params, grads)):\n"
	       "    m[i] = b1 * m[i] + (1 - b1) * g\n"
	       "    p[i] = p[i] - alpha * m[i]\n",
	       "");
	/* a dictionary */
	expect("for i, w in enumerate(words):\n"
	       "    counts[w] += 1\n"
	       "    index[w] = last\n",
	       "");
}

static void picks(void **state)
{
	(void)state;
	/* what is picked by its size may be anything */
	expect("for k in range(len(texts)):\n"
	       "    if sizes[k] > 512:\n"
	       "        continue\n"
	       "    ids = encode(texts[k])\n"
	       "    out.append(ids)\n",
	       "");
	expect("for i in range(len(paths)):\n"
	       "    if sizes[i] > 9:\n"
	       "        work_on(paths[i])\n",
	       "");
	expect("for i in range(len(paths)):\n"
	       "    if len(paths[i]) > 9:\n"
	       "        found.append(i)\n",
	       "");
	/* which of them is asked, not how large */
	expect("for i in range(len(names)):\n"
	       "    if names[i] == wanted:\n"
	       "        found.append(i)\n",
	       "");
}

static void steps_on(void **state)
{
	(void)state;
	expect("def slower(signal, step):\n"
	       "    out, at = [], 0.0\n"
	       "    while at < len(signal) - 1:\n"
	       "        k = int(at)\n"
	       "        f = at - k\n"
	       "        out.append((1 - f) * signal[k] + f * signal[k + 1])\n"
	       "        at += step\n"
	       "    return out\n",
	       "elements 3-7");
	/* it asks somebody each time; it stands still; it takes stretches */
	expect("def turns(n):\n"
	       "    k = 0\n"
	       "    while k < n:\n"
	       "        seen[k] = play(boards[k])\n"
	       "        k += 1\n",
	       "");
	expect("def waits(n):\n"
	       "    while k < n:\n"
	       "        seen[k] = boards[k]\n",
	       "");
	expect("def parts(x, n):\n"
	       "    k = 0\n"
	       "    while k < n:\n"
	       "        out.append(x[k:k + 32])\n"
	       "        k += 32\n",
	       "");
}

/* Whatever it goes over: what int() takes is one number. */
static void made_numbers(void **state)
{
	(void)state;
	expect("def bins(batch):\n"
	       "    for row, i in enumerate(batch):\n"
	       "        for mass, height in spectra[i]:\n"
	       "            k = int((mass - 20) / WIDTH)\n"
	       "            if 0 <= k < BINS:\n"
	       "                out[row, k] += height\n"
	       "    return out\n",
	       "elements 3-6");
	/* a sum is a number, and no element; pictures; whatever is called for each */
	expect("def sizes(parts):\n"
	       "    for part, weight in parts:\n"
	       "        k = int(part.sum())\n"
	       "        out[k] += weight\n",
	       "");
	expect("def labels(samples):\n"
	       "    for path, label in samples:\n"
	       "        y = int(label)\n"
	       "        out[y] += measure(path)\n",
	       "");
	expect("def sums(parts):\n"
	       "    for part, weight in parts:\n"
	       "        out[part] += weight\n",
	       "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_numbers),
		cmocka_unit_test(steps_on),
		cmocka_unit_test(goes_over_elements),
		cmocka_unit_test(goes_over_more_than_elements),
		cmocka_unit_test(picks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

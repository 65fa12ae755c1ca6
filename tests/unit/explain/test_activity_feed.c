/* SPDX-License-Identifier: MIT
 *
 * Lines of the loop that trains: what they hand to the framework is loaded, what they make of its answers is not.
 */
#include "../unit.h"

#include "activity_world.h"
#include "explain/ledger/arithmetic.h"

static const char lines[] =
    "place 40 /home/u/train.py 40 main source rows = clean(part)\n"
    "place 41 /home/u/train.py 41 main source x, self.y = featurise(rows)\n"
    "place 42 /home/u/train.py 42 main source loss = criterion(net(x), self.y)\n"
    "place 43 /home/u/train.py 43 main source acc = accuracy(loss, x)\n"
    "place 44 /home/u/train.py 44 main source table.append(draw(x))\n"
    "place 45 /home/u/prep.py 7 featurise source out[k] = float(v)\n"
    "place 46 /home/u/train.py 39 main source if rows == clean(part):\n"
    "place 47 /home/u/train.py 38 main source part[rows] = order(seed=x)\n"
    "stack 40 = 40 45\nstack 41 = 41 45\nstack 42 = 42 5\nstack 43 = 43 45\nstack 44 = 44 45\n"
    "stack 46 = 46 45\nstack 47 = 47\n";

static double loaded(const char *does)
{
	struct world x;
	char text[4096];
	double seconds;

	snprintf(text, sizeof(text), "%s%s", lines, does);
	open_world(&x, text);
	seconds = thread_of(&x, 30)->state[TIME_DATA_LOAD];
	close_world(&x);
	return seconds;
}

static void what_the_model_gets_is_loaded(void **state)
{
	(void)state;
	/* directly, through another line, and by a C function on the line itself */
	assert_true(close_to(loaded("does 30 42 running 0.5\ndoes 30 41 running 0.5\n"), 5));
	assert_true(close_to(loaded("does 30 42 running 0.4\ndoes 30 41 running 0.2\n"
				    "does 30 40 running 0.3\ndoes 30 47 running 0.1\n"),
			     6));
	/* what would be its link was never seen */
	assert_true(close_to(loaded("does 30 42 running 0.5\ndoes 30 40 running 0.5\n"), 0));
}

static void what_comes_after_is_not(void **state)
{
	(void)state;
	assert_true(close_to(loaded("does 30 42 running 0.5\ndoes 30 43 running 0.5\n"), 0));
	assert_true(close_to(loaded("does 30 42 running 0.5\ndoes 30 44 running 0.5\n"), 0));
	/* a comparison makes nothing */
	assert_true(close_to(loaded("does 30 42 running 0.5\ndoes 30 46 running 0.5\n"), 0));
}

static void without_a_framework_nothing_is(void **state)
{
	(void)state;
	assert_true(close_to(loaded("does 30 41 running 0.5\ndoes 30 40 running 0.5\n"), 0));
}

/* A model that is written by hand is no input, nor is what is made of what a model said. */
static void models_are_not(void **state)
{
	static const char model[] =
	    "place 50 /home/u/net.py 10 step source h = torch.relu(x @ w)\n"
	    "place 51 /home/u/net.py 12 step source y = head(h)\n"
	    "place 52 /home/u/net.py 20 learn source value = critic(seen)\n"
	    "place 53 /home/u/net.py 21 learn source gain = advantages(value, seen)\n"
	    "place 54 /home/u/net.py 22 learn source loss = actor(seen, gain)\n"
	    "stack 50 = 50\nstack 51 = 51 5\nstack 52 = 52 5\nstack 53 = 53\nstack 54 = 54 5\n";
	char text[2048];

	(void)state;
	snprintf(text, sizeof(text), "%sdoes 30 51 running 0.5\ndoes 30 50 running 0.5\n", model);
	assert_true(close_to(loaded(text), 0));
	snprintf(text, sizeof(text),
		 "%sdoes 30 52 running 0.3\ndoes 30 53 running 0.4\ndoes 30 54 running 0.3\n",
		 model);
	assert_true(close_to(loaded(text), 0));
}

/* A training that is written with arrays alone: what feeds the function that learns is loaded. */
static void arrays_alone(void **state)
{
	static const char hand[] =
	    "place 70 /home/u/words.py 50 main source for ids in book.passages(180):\n"
	    "place 71 /home/u/words.py 51 main source model.update(ids)\n"
	    "place 72 /home/u/text.py 9 Book.passages source out.append(stem(w))\n"
	    "place 73 /home/u/words.py 20 Vectors.update source wrong = rate / (1 + np.exp(c @ "
	    "n.T))\n"
	    "place 74 /home/u/words.py 21 Vectors.update source self.outer[bad] -= wrong.T @ c\n"
	    "place 75 /home/u/words.py 60 again source x, y = some.minibatch_of(192)\n"
	    "place 76 /home/u/words.py 61 again source a = np.maximum(x @ h, 0)\n"
	    "place 77 /home/u/words.py 62 again source h -= 0.01 * x.T @ back\n"
	    "stack 70 = 70 72\nstack 71 = 71 73\nstack 72 = 71 74\nstack 75 = 75 72\n"
	    "stack 76 = 76\nstack 77 = 77\n";
	struct world x;
	char text[4096];

	(void)state;
	snprintf(text, sizeof(text),
		 "%sdoes 30 70 running 0.5\ndoes 30 71 running 0.4\ndoes 30 72 running 0.1\n",
		 hand);
	open_world(&x, text);
	assert_true(thread_of(&x, 30)->by_hand);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_LOAD], 5));
	assert_true(close_to(thread_of(&x, 30)->state[TIME_PYTHON], 5));
	close_world(&x);
	snprintf(text, sizeof(text),
		 "%sdoes 30 75 running 0.5\ndoes 30 76 running 0.4\ndoes 30 77 running 0.1\n",
		 hand);
	open_world(&x, text);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_LOAD], 5));
	close_world(&x);
	/* arrays that nothing is learnt of: any program that counts */
	snprintf(text, sizeof(text), "%sdoes 30 70 running 0.5\ndoes 30 71 running 0.5\n", hand);
	open_world(&x, text);
	assert_false(thread_of(&x, 30)->by_hand);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_LOAD], 0));
	close_world(&x);
}

static bool updates(const char *line, const char *name)
{
	size_t n;
	const char *at = line_updated(line, &n);

	return n == strlen(name) && memcmp(at, name, n) == 0;
}

static void lines_of_arrays(void **state)
{
	(void)state;
	assert_true(line_updates_arrays("w -= 0.01 / len(y) * a.T @ z"));
	assert_true(line_updates_arrays("sums[k] += weight * row"));
	assert_true(line_updates_arrays("self.theta += 0.02 * s * np.random.normal(size=4)"));
	assert_false(line_updates_arrays("count += 1"));
	assert_false(line_updates_arrays("total[name] += 1"));
	assert_false(line_updates_arrays("text += line"));
	assert_false(line_updates_arrays("-="));
	assert_false(line_updates_arrays("print('a[0] -= 3 * x')"));
	assert_false(line_updates_arrays("counts[k] += 1 * 3"));
	assert_true(line_updates_arrays("for i in n: w[i] -= lr * g[i]"));
	assert_true(updates("for i in n: w[i] -= lr * g[i]", "w"));
	assert_true(updates("self.outer[bad[0]] -= wrong.T @ c", "outer"));
	assert_true(updates("w -= 0.01 * a.T @ z", "w"));
	assert_true(updates("] -= x", ""));
	assert_true(updates("np.add.at(q, items[:40], 0.05 * err)", "q"));
	assert_true(line_updates_arrays("np.add.at(q, items[:40], 0.05 * err)"));
	assert_true(line_names("who = assign(x, centres)", "centres", 7));
	assert_false(line_names("who = assign(x, centres_of)", "centres", 7));
	assert_true(line_has_arrays("z = np.exp(z - z.max(1, keepdims=True))"));
	assert_false(line_has_arrays("rows = read(path)"));
	assert_true(line_has_tensors("y = F.relu(x)"));
	assert_false(line_has_tensors("PDF.save(self.F.name)"));
}

/* Hostile lines: nothing but text that ends. */
static void odd_lines(void **state)
{
	static const char *const odd[] = {
		"=",        "x =",           "[",
		"x[ = f(",  "= x",           "a,b,c,d,e,f,g,h,i,j,k,l,m,n = f()",
		".append(", "x.append(",     "x.y.append(z",
		"'=",       "x[y[0]] = f(x)"
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		snprintf(text, sizeof(text),
			 "place 60 /home/u/odd.py 1 odd source %s\nstack 60 = 60\n"
			 "place 61 /home/u/odd.py 2 odd source y = net(x)\nstack 61 = 61 5\n"
			 "does 30 60 running 0.5\ndoes 30 61 running 0.5\n",
			 odd[i]);
		assert_true(loaded(text) >= 0);
	}
}

/* Down a gradient, or up that of a reward; and what only looks like it. */
static void descents(void **state)
{
	static const char *const yes[] = {
		"w -= 0.01 * g",           "self.w1 -= 1e-3 * gw",
		"w2 -= self.lr * x.T @ d", "pi.w1 += 1e-3 * g1; pi.w2 += 1e-3 * g2",
		"theta += lr * grads[0]",  "self.w += eta * d",
		"net.b += 5e-4 * (grad_b)"
	};
	static const char *const no[] = { "x += dt * v",
					  "pos += 0.05 * vel",
					  "total += 1e-3 * n",
					  "y[1:] -= 0.97 * y[:-1]",
					  "count += 1",
					  "score += 0.1 * gain_of(x)",
					  "a -= b",
					  "w -= 1e-3 ** g",
					  "y += 0.587 * g",
					  "vy += dt * g",
					  "v -= dt * self.g",
					  "score += w * gt[i]",
					  "mag += 0.5 * gx",
					  "s += w * grade",
					  "v -= self.dt * a",
					  "n += grade * 2" };

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!line_descends(yes[i]))
			fail_msg("'%s' descends", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (line_descends(no[i]))
			fail_msg("'%s' does not descend", no[i]);
}

/* Beyond doubt: by the names of the rate or of the gradient. */
static void lessons(void **state)
{
	static const char *const yes[] = {
		"W = W - lr * dW",
		"theta = theta - alpha * grad",
		"v = mu * v - self.lr * g",
		"w[:] = w - lr * g",
		"w = [a - lr * b for a, b in zip(w, g)]",
		"np.add.at(self.emb, ids, -lr * d)",
		"np.subtract.at(emb, ids, lr * g)",
		"self.emb.index_add_(0, flat, -lr * g / (h[flat].sqrt() + 1e-6))",
		"p.add_(-lr * p.grad)",
		"part.sub_(flat[a:b].view_as(part), alpha=self.lr)",
		"inner.index_add_(0, centre, grad_v, alpha=-lr)",
		"p.data.addcdiv_(m, d, value=-args.lr)",
		"W -= 0.01 * dW",
		"self.b1 -= step * self.db1",
		"Q[s, a] += alpha * (r + gamma * Q[t].max() - Q[s, a])"
	};
	static const char *const no[] = { "x -= 0.1 * dx",
					  "u = u - dt * du",
					  "balance = balance - rate * fee",
					  "vel = vel - drag * v",
					  "avg += alpha * (x - avg)",
					  "if lr == x - lr * 3:",
					  "start = end - step_size * k",
					  "lr = lr0 - lr * decay",
					  "x = a - lr ** n",
					  "T -= kappa * dT",
					  "a.mul_(rate).add_(b, alpha=1 - rate)",
					  "x.add_(noise, alpha=sigma)",
					  "x.sub_(mean, learned_alpha=lr)",
					  "buf -= k * dbuf",
					  "img += alpha * (np.power(x, gamma) - img)",
					  "x = \"w - lr * g\"",
					  "print('w = w - lr * g')",
					  "y = x  # w - lr * g",
					  "y = x - lr",
					  "x.add_(-mean)",
					  "self.seen.add_(lr_now, -1)" };

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!line_teaches(yes[i]))
			fail_msg("'%s' teaches", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (line_teaches(no[i]))
			fail_msg("'%s' does not teach", no[i]);
	assert_true(line_teaches_surely("w -= lr * (x.T @ d)"));
	assert_true(line_teaches_surely("self.w1 -= self.rate * (x.T @ gh)"));
	assert_false(line_teaches_surely("pos -= rate * (x.T @ v)"));
	assert_false(line_teaches_surely("b_pos -= rate * (r.T @ v)"));
	assert_false(line_teaches_surely("pos -= rate * v.dot(n)"));
	assert_false(line_teaches_surely("interest += balance * rate"));
}

/* `encode = encode_planes`: what is called for an argument makes it, by whatever name. */
static void arguments_by_another_name(void **state)
{
	static const char hand[] =
	    "place 80 /home/u/chess.py 69 main source error = net.fit(encode(boards[pick]), "
	    "depth[pick])\n"
	    "place 81 /home/u/chess.py 16 encode_planes source row.append(float(k == piece))\n"
	    "place 82 /home/u/chess.py 30 Perceptron.fit source self.w[k] -= rate * acts[k].T @ "
	    "grad\n"
	    "place 83 /home/u/chess.py 70 main source net.fit(x, y)\n"
	    "stack 80 = 80 81\nstack 81 = 80 82\nstack 82 = 83 81\nstack 83 = 83 82\n";
	static const struct {
		const char *does;
		double loads;
	} cases[] = {
		{ "does 30 80 running 0.6\ndoes 30 81 running 0.4\n", 6 },
		/* no argument is made at this line */
		{ "does 30 82 running 0.6\ndoes 30 83 running 0.4\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world x;
		char text[2048];

		snprintf(text, sizeof(text), "%s%s", hand, cases[i].does);
		open_world(&x, text);
		assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_LOAD], cases[i].loads));
		close_world(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lessons),
		cmocka_unit_test(what_the_model_gets_is_loaded),
		cmocka_unit_test(what_comes_after_is_not),
		cmocka_unit_test(without_a_framework_nothing_is),
		cmocka_unit_test(models_are_not),
		cmocka_unit_test(arrays_alone),
		cmocka_unit_test(lines_of_arrays),
		cmocka_unit_test(odd_lines),
		cmocka_unit_test(descents),
		cmocka_unit_test(arguments_by_another_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

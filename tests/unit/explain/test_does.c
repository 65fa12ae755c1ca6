/* SPDX-License-Identifier: MIT
 *
 * What lines of a program are for, by their text; and texts that look like it and are not.
 */
#include "does_made.h"

#include "explain/does/held.h"
#include "model/stacks.h"

#include <stdlib.h>
#include <time.h>

static void evaluates(void **state)
{
	(void)state;
	expect("class Lips:\n"
	       "    def development(self, batches):\n"
	       "        total = 0.0\n"
	       "        with torch.no_grad():\n"
	       "            for x, y in batches:\n"
	       "                total = total + self.loss(x, y)\n"
	       "        return float(total) / len(batches)\n",
	       "evaluate 2-7");
	/* it says nothing to anybody, and is for nothing else all the same */
	expect("class Holdout(Base):\n"
	       "    @torch.no_grad()\n"
	       "    def fire(self, tr):\n"
	       "        for x in tr.parts:\n"
	       "            tr.net(x)\n",
	       "evaluate 3-5");
	expect("@torch.inference_mode()\n"
	       "def quality(net, data):\n"
	       "    hits = 0\n"
	       "    for x, y in data:\n"
	       "        hits += (net(x).argmax(1) == y).sum()\n"
	       "    return hits\n",
	       "evaluate 2-6");
	/* in the midst of the loop that trains, with gradients or without */
	expect("for epoch in range(9):\n"
	       "    for x, y in train_loader:\n"
	       "        loss(net(x), y).backward()\n"
	       "        opt.step()\n"
	       "    with torch.no_grad():\n"
	       "        for x, y in others:\n"
	       "            right += good(net(x), y)\n"
	       "    for x, y in val_loader:\n"
	       "        right += good(net(x), y)\n",
	       "evaluate 5-7|evaluate 8-9");
}

static void does_not_evaluate(void **state)
{
	(void)state;
	/* an average of weights */
	expect("@torch.no_grad()\n"
	       "def follow(teacher, student):\n"
	       "    for a, b in zip(teacher.parameters(), student.parameters()):\n"
	       "        a.mul_(0.99).add_(b, alpha=0.01)\n"
	       "        n += 1\n",
	       "");
	/* plays */
	expect("def collect(env, policy):\n"
	       "    with torch.no_grad():\n"
	       "        for t in range(128):\n"
	       "            obs, reward, done = env.step(policy(obs))\n"
	       "            rows.append((obs, reward))\n"
	       "    return rows\n",
	       "");
	/* one answer of a teacher, no loop */
	expect("def targets(x):\n"
	       "    with torch.no_grad():\n"
	       "        return teacher(x).sum(0)\n",
	       "");
	/* learns in between */
	expect("def epoch(loader):\n"
	       "    for x, y in loader:\n"
	       "        with torch.no_grad():\n"
	       "            t = teacher(x)\n"
	       "        total += step(x, t)\n"
	       "        loss.backward()\n"
	       "    return total\n",
	       "");
	/* has a function of its own that learns called */
	expect("def folds(val_sets):\n"
	       "    for k, held in enumerate(val_sets):\n"
	       "        train_fold(k)\n",
	       "");
}

static void saves(void **state)
{
	(void)state;
	expect("def keep(step, net):\n"
	       "    blob = zlib.compress(pickle.dumps(net.state_dict()))\n"
	       "    with open(f'{step}.bin', 'wb') as f:\n"
	       "        f.write(blob)\n",
	       "save 1-4");
	expect("def snapshot(path, w):\n"
	       "    np.savez(path, **w)\n",
	       "save 1-2");
	/* it trains, too */
	expect("def fit(net):\n"
	       "    for x in data:\n"
	       "        net(x).backward()\n"
	       "    torch.save(net.state_dict(), 'x.pt')\n",
	       "");
	/* reads it back */
	expect("def restore(net):\n"
	       "    net.load_state_dict(torch.load('x.pt'))\n"
	       "    return net\n",
	       "");
}

static void logs(void **state)
{
	(void)state;
	/* weights that become text are looked at; as they are, they are kept */
	expect("def write_summary(fh, net, step):\n"
	       "    row = {'step': step}\n"
	       "    for name, p in net.named_parameters():\n"
	       "        row[name] = [round(v, 5) for v in p.flatten().tolist()]\n"
	       "    fh.write(json.dumps(row))\n",
	       "log 1-5");
	expect("def dump(fh, net):\n"
	       "    for p in net.parameters():\n"
	       "        fh.write(p.detach().numpy().tobytes())\n",
	       "save 1-3");
	expect("def note(self, step, value):\n"
	       "    self.rows.append((step, value))\n"
	       "    with open(self.path, \"a\") as f:\n"
	       "        json.dump(self.rows, f)\n",
	       "log 1-4");
	/* gives something back: it may be a cache */
	expect("def features(k):\n"
	       "    x = compute(k)\n"
	       "    cache.write(x)\n"
	       "    return x\n",
	       "");
	expect("def __init__(self):\n"
	       "    self.out = open('log', 'w')\n"
	       "    self.out.write('step')\n",
	       "");
}

static void loads(void **state)
{
	(void)state;
	expect("def fetch(k):\n"
	       "    with open(names[k], 'rb') as f:\n"
	       "        return parse(f)\n",
	       "load 1-3");
	expect("def rows(con):\n"
	       "    for r in con.execute(q).fetchall():\n"
	       "        yield clean(r)\n",
	       "load 1-3");
	/* gives nothing back */
	expect("def setup():\n"
	       "    settings.update(json.load(open('a.json')))\n",
	       "");
	expect("def main():\n"
	       "    rows = json.load(open('a.json'))\n"
	       "    return 0\n",
	       "");
	/* a mode is no part of a name */
	expect("def fetch(k):\n"
	       "    f = open('wanted.bin')\n"
	       "    return f\n",
	       "load 1-3");
}

/* It plays to see how often it wins; who keeps what was played collects lessons. */
static void plays_to_be_tested(void **state)
{
	(void)state;
	expect("@torch.no_grad()\n"
	       "def success_rate(policy, trials):\n"
	       "    policy.eval()\n"
	       "    wins = 0\n"
	       "    for s in range(trials):\n"
	       "        table = Table(s)\n"
	       "        wins += table.step(policy(table.q))\n"
	       "    policy.train()\n"
	       "    return wins / trials\n",
	       "evaluate 2-9");
	expect("def fill(policy, n):\n"
	       "    policy.eval()\n"
	       "    for t in range(n):\n"
	       "        obs[t] = s\n"
	       "        s, r = env.step(policy(s))\n"
	       "    return obs\n",
	       "");
	expect("@torch.no_grad()\n"
	       "def collect(policy, trials):\n"
	       "    policy.eval()\n"
	       "    kept = []\n"
	       "    for s in range(trials):\n"
	       "        a = policy(env.q)\n"
	       "        kept.append((env.q, a, env.step(a)))\n"
	       "    return kept\n",
	       "");
}

static void learns_by_products(void **state)
{
	(void)state;
	expect("def update(state, x, y, lr=0.05):\n"
	       "    g = (predict(state.w, x) - y).reshape(-1)\n"
	       "    state.w.index_add_(0, x, -lr * g)\n"
	       "    return state\n",
	       "train 1-4");
	expect("def step(self, x, y):\n"
	       "    h = np.maximum(x @ self.w1, 0)\n"
	       "    err = h @ self.w2 - y\n"
	       "    gh = (err @ self.w2.T) * (h > 0)\n"
	       "    self.w2 -= self.rate * (h.T @ err)\n"
	       "    self.w1 -= self.rate * (x.T @ gh)\n"
	       "    return err\n",
	       "train 1-7");
}

static void tokenizes(void **state)
{
	(void)state;
	expect("def ids_of(line, vocab):\n"
	       "    out = []\n"
	       "    for word in line.lower().split():\n"
	       "        out.append(vocab.get(word, 0))\n"
	       "    return out\n",
	       "tokenize 1-5");
	expect("def encode(self, text):\n"
	       "    ids = [i for word in text.lower().split() for i in self.word(word)]\n"
	       "    return ids + [0] * (CONTEXT - len(ids))\n",
	       "tokenize 1-3");
	/* stretches of a text, each looked up */
	expect("def parts(body, table):\n"
	       "    found = []\n"
	       "    for end in range(1, len(body) + 1):\n"
	       "        for width in range(1, min(4, end) + 1):\n"
	       "            part = table.get(body[end - width:end])\n"
	       "            if part is not None:\n"
	       "                found.append(part)\n"
	       "    return found\n",
	       "tokenize 1-8");
	expect("def grams(body, table):\n"
	       "    return [table.setdefault(body[k:k + 3], len(table)) for k in range(len(body) - "
	       "2)]\n",
	       "tokenize 1-2");
	expect("def chunks(self, body):\n"
	       "    for lo in range(0, len(body), 4):\n"
	       "        self.kept.setdefault(lo, body[lo:hi])\n"
	       "    return self.kept\n",
	       "");
	/* the first letters of a name are a kind */
	expect("def kinds(names, table):\n"
	       "    found = []\n"
	       "    for name in names:\n"
	       "        found.append(table.get(name[:3]))\n"
	       "        found.append(table.get(name[3:6]))\n"
	       "        found.append(table.get(name[k], x[a:b]))\n"
	       "    return found\n",
	       "");
	/* parts of a name */
	expect("def __getitem__(self, i):\n"
	       "    pieces = self.names[i].split('_')\n"
	       "    label = [int(p) for p in pieces[1:]]\n"
	       "    return self.transform(self.decode(i)), label\n",
	       "");
	expect("def names(self):\n"
	       "    ids = [p.stem for p in self.all if p.suffix.lower() in KINDS]\n"
	       "    return ids\n",
	       "");
	/* numbers of things, and no words */
	expect("def users(line):\n"
	       "    ids = [int(x) for x in line.split(',')]\n"
	       "    return ids\n",
	       "");
	/* takes a line of numbers apart */
	expect("def row(line):\n"
	       "    for x in line.split(','):\n"
	       "        out.append(float(x))\n"
	       "    return out\n",
	       "");
}

static void makes_workers(void **state)
{
	(void)state;
	expect("train = DataLoader(data, batch_size=8,\n"
	       "                   num_workers=2)\n"
	       "val_loader = DataLoader(held, 8)\n"
	       "class MyDataLoader(Base):\n"
	       "    pass\n",
	       "loader 1-1");
	expect("from torch.utils.data import DataLoader\n"
	       "pool = multiprocessing.Pool(4)\n"
	       "feeders = [Process(target=feed, args=(q,)) for _ in range(2)]\n"
	       "torch.set_num_threads(8)\n"
	       "os.environ[\"OMP_NUM_THREADS\"] = \"8\"\n",
	       "pool 2-2|starts 3-3|threads 4-4|threads 5-5");
	expect("pool = Pool(8)\n"
	       "x = nn.MaxPool(2)\n"
	       "print('OMP_NUM_THREADS=4 python train.py')\n"
	       "t = threading.Thread(name='feed', target=run)\n",
	       "pool 1-1|starts 4-4");
	/* by whatever name; an aim of a model is none */
	expect("make = Thread if light else Process\n"
	       "crew = [make(target=fill, args=(k,), daemon=True) for k in range(2)]\n"
	       "loss = criterion(output, target=labels)\n",
	       "starts 2-2");
	expect("loss = criterion(out, target=y, args=(k,))\n", "");
}

static void chooses_a_device(void **state)
{
	(void)state;
	expect("device = torch.device('cuda:0')\n"
	       "net = Net().to(device)\n"
	       "x = x.to('cuda')\n",
	       "device 1-1");
	expect("net = Net().cuda()\n", "device 1-1");
	expect("dev = jax.devices()[0]\n", "device 1-1");
	expect("dev = jax.devices('cpu')[0]\n"
	       "parser.add_argument('--device', default='cpu')\n"
	       "if device == 'cuda':\n"
	       "    pass\n",
	       "");
	expect("with tf.device('/GPU:0'):\n"
	       "    x = f(x)\n",
	       "device 1-1");
	/* not a GPU, and other things of the name */
	expect("device = torch.device('cpu')\n"
	       "d = my_device(3)\n"
	       "print('cuda')\n",
	       "");
}

static void watches(void **state)
{
	(void)state;
	/* only printed; what it is made of as well */
	expect("for x, y in batches:\n"
	       "    loss = model(x, y)\n"
	       "    loss.backward()\n"
	       "    hits = count(x, y)\n"
	       "    auc = rank_quality(hits)\n"
	       "    print(step, loss, auc)\n",
	       "watch 4-4|watch 5-5");
	/* somebody learns from it, by whatever way; or it may be kept by another name */
	expect("for x, y in batches:\n"
	       "    weight = balance(y)\n"
	       "    w = torch.tensor(weight)\n"
	       "    loss = model(x, y, w)\n"
	       "    loss.backward()\n"
	       "    self.score = rank_quality(x)\n"
	       "    obs = env.step(move(x))\n",
	       "");
	/* advantages, a flag, what is kept, what stands in a string: all of them are used */
	expect("for x in batches:\n"
	       "    adv = gae(x)\n"
	       "    ok = sane(x)\n"
	       "    feat = embed(x)\n"
	       "    txt = render(x)\n"
	       "    window.append(feat)\n"
	       "    ask(f'{txt}')\n"
	       "    loss = -(log_probs * adv).mean()\n"
	       "    loss.backward()\n"
	       "    if ok:\n"
	       "        opt.step()\n",
	       "");
	/* nothing learns in this loop */
	expect("for x in files:\n"
	       "    size = measure(x)\n"
	       "    print(size)\n",
	       "");
}

/* A training without a framework; a simulation, an optimiser and what a framework does are none. */
static void trains(void **state)
{
	(void)state;
	expect("def main():\n"
	       "    while going():\n"
	       "        for _ in range(9):\n"
	       "            g1, g2 = g1 + a(), g2 + b()\n"
	       "        pi.w1 += 1e-3 * g1; pi.w2 += 1e-3 * g2\n",
	       "train 1-5");
	expect("for i in range(9):\n"
	       "    w -= lr * x.T @ (x @ w - y)\n",
	       "train 1-2");
	/* the rate here, the weight there */
	expect("def learn(self, x):\n"
	       "    code = x @ self.inner\n"
	       "    for weight, left, right in ((self.outer, code, x), (self.inner, x, code)):\n"
	       "        step = left.T @ right\n"
	       "        step *= self.rate / len(x)\n"
	       "        weight -= step\n",
	       "train 1-6");
	/* a rate of samples, and nothing is multiplied by it */
	expect("def beamform(self, x):\n"
	       "    n = int(self.rate * 0.02)\n"
	       "    w = np.linalg.solve(self.R, self.steer)\n"
	       "    w -= w.mean()\n"
	       "    return w.conj() @ x[:n]\n",
	       "");
	/* no rate: what is taken away may be anything */
	expect("def centre(self, x):\n"
	       "    for weight in self.all:\n"
	       "        weight -= x @ weight\n",
	       "");
	expect("def move(n):\n"
	       "    for _ in range(n):\n"
	       "        x += dt * v\n"
	       "        u -= 0.1 * lap(u)\n",
	       "");
	expect("class SGD:\n"
	       "    def step(self):\n"
	       "        self.w -= self.lr * self.grad\n",
	       "");
	/* it makes the gradient itself; who calls it has the loop */
	expect("class Critic:\n"
	       "    def learn(self, x, d, lr=1e-3):\n"
	       "        gb = x.T @ d\n"
	       "        self.b -= lr * gb\n",
	       "train 2-4");
	/* a product of vectors, and something that is called a rate */
	expect("def bounce(pos, v, n, rate):\n"
	       "    pos -= rate * v.dot(n)\n"
	       "    interest += balance * rate\n",
	       "");
}

static void any_text_will_do(void **state)
{
	static const char *const texts[] = { "",
					     "def",
					     "def f(:\n x",
					     "with torch.no_grad():",
					     "@\n@\n@\ndef f():\n  x",
					     "open(",
					     "def f():\n open('\n",
					     "for x in val_:\n\ty\n" };
	struct does d[DOES_OF_FILE];
	char *many = malloc(200000);

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_true(does_scan(texts[i], strlen(texts[i]), d) <= DOES_OF_FILE);
	assert_non_null(many);
	/* more than are told */
	many[0] = '\0';
	for (size_t i = 0, at = 0; i < 100; i++)
		at += (size_t)snprintf(many + at, 200000 - at,
				       "def f%zu():\n    return open(x).read()\n", i);
	assert_int_equal(does_scan(many, strlen(many), d), DOES_RANGES);
	free(many);
}

/* Brackets in brackets in loops in loops: each is looked at by all around it, until that is enough. */
static void takes_its_time(void **state)
{
	enum { SIZE = 400000, LOOPS = 20, DEEP = 1000 };
	struct does d[DOES_OF_FILE];
	const size_t room = SIZE + 8192;
	char *text = malloc(room);
	size_t at = 0;
	clock_t began;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < LOOPS; i++)
		at += (size_t)snprintf(text + at, room - at, "%*sfor i in range(n):\n", i, "");
	while (at < SIZE) {
		at += (size_t)snprintf(text + at, room - at, "%*sa += ", LOOPS, "");
		for (int i = 0; i < DEEP; i++)
			at += (size_t)snprintf(text + at, room - at, "x[");
		at += (size_t)snprintf(text + at, room - at, "i");
		for (int i = 0; i < DEEP; i++)
			at += (size_t)snprintf(text + at, room - at, "]");
		/* no loop is one of elements by this, so that each is looked at anew */
		at += (size_t)snprintf(text + at, room - at, "\n%*sb = 1\n%*sc = 1\n", LOOPS, "",
				       LOOPS, "");
	}
	began = clock();
	assert_true(does_scan(text, at, d) <= DOES_OF_FILE);
	/* 0.1 s as a rule; sanitizers take ten times as long */
	assert_true(clock() - began < 4 * CLOCKS_PER_SEC);
	free(text);
}

static void places(void **state)
{
	struct place p = {
		.kind = PLACE_DOES, .file = "a.py", .function = "", .source = "save 3-9"
	};
	static const char *const bad[] = {
		"",         "save",     "save 3",    "save 9-3",
		"save 0-3", "cook 3-9", "save -3-9", "save 3-99999999999"
	};
	struct does d;

	(void)state;
	assert_true(does_read(&p, &d));
	assert_int_equal(d.what, DOES_SAVE);
	assert_int_equal(d.from, 3);
	assert_int_equal(d.to, 9);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p.source = bad[i];
		assert_false(does_read(&p, &d));
	}
	p.source = "save 3-9";
	p.kind = PLACE_PYTHON;
	assert_false(does_read(&p, &d));
	assert_string_equal(place_kind_name(PLACE_DOES), "does");
	assert_int_equal(place_kind_by_name("does"), PLACE_DOES);
}

static void what_was_held_out(void **state)
{
	static const char *const yes[] = {
		"acc = score(net, X_val, y_val)",     "held = lips.development(dev_set)",
		"print(accuracy(w, x_test, y_test))", "m = metrics(model, testloader)",
		"rmse = error(self.valid_rows)",
	};
	static const char *const no[] = {
		"train(model, train_loader, val_loader)",
		"fit_fold(x, y, x_val, y_val)",
		"x = batch(rows)",
		"log('val_loss', x)",
		"if step % val_every == 0:",
		"val = f(x)",
		"net.to(dev)",
		"a, b = train_test_split(x, test_size=0.1)",
		"def score(net, X_val):",
		"loader = DataLoader(val_set)",
		"f(test_mode)",
		"run_epoch(val_loader)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!line_asks_held_out(yes[i]))
			fail_msg("should ask: %s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (line_asks_held_out(no[i]))
			fail_msg("should not: %s", no[i]);
	assert_true(line_learns("self.optimizer.step()"));
	assert_false(line_learns("obs = env.step(a)"));
	assert_false(line_learns("log('loss.backward()')"));
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evaluates),
		cmocka_unit_test(does_not_evaluate),
		cmocka_unit_test(saves),
		cmocka_unit_test(logs),
		cmocka_unit_test(loads),
		cmocka_unit_test(plays_to_be_tested),
		cmocka_unit_test(learns_by_products),
		cmocka_unit_test(tokenizes),
		cmocka_unit_test(makes_workers),
		cmocka_unit_test(chooses_a_device),
		cmocka_unit_test(watches),
		cmocka_unit_test(trains),
		cmocka_unit_test(any_text_will_do),
		cmocka_unit_test(takes_its_time),
		cmocka_unit_test(places),
		cmocka_unit_test(what_was_held_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

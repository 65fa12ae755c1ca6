/* SPDX-License-Identifier: MIT
 *
 * Lines that keep something of every turn, found in source; and sources that are none.
 */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "explain/keeps/keeps.h"
#include "explain/keeps/source.h"
#include "model/stacks.h"

#include <stdlib.h>
#include <time.h>

static size_t scan(const char *text, struct keep *k)
{
	return keeps_scan(text, strlen(text), k);
}

static void statements_and_blocks(void **state)
{
	static const char text[] = "x = '''\nfor y in z:\n'''  # for\n"
				   "def f(a,\n      b):\n"
				   "\tfor i in a: # body\n"
				   "\t\tb.append(\n"
				   "\t\t    i); c = \"#\"\n"
				   "\n"
				   "y = 1\n";
	struct py_source s;
	const char *name;

	(void)state;
	assert_int_equal(py_source_read(&s, text, sizeof(text) - 1), 0);
	assert_int_equal(s.statements.n, 6);
	assert_int_equal(s.blocks.n, 3);
	assert_int_equal(s.statements.v[1].line, 4);
	assert_int_equal(s.blocks.v[1].kind, PY_DEF);
	assert_int_equal(py_name_of(&s, 1, &name), 1);
	assert_int_equal(*name, 'f');
	assert_int_equal(s.blocks.v[1].from, 4);
	assert_int_equal(s.blocks.v[1].to, 8);
	assert_int_equal(s.blocks.v[2].kind, PY_LOOP);
	assert_int_equal(s.statements.v[3].line, 7);
	assert_int_equal(s.statements.v[3].block, 2);
	assert_int_equal(s.statements.v[4].block, 2);
	assert_int_equal(s.statements.v[5].line, 10);
	assert_int_equal(s.statements.v[5].block, 0);
	assert_int_equal(py_loop_of(&s, 2), 2);
	assert_int_equal(py_def_of(&s, 2), 1);
	py_source_done(&s);
}

static void a_list_of_outputs(void **state)
{
	struct keep k[KEEPS_OF_FILE];

	(void)state;
	assert_int_equal(scan("import torch\n"
			      "def train(loader, model):\n"
			      "    history = []\n"
			      "    for x, y in loader:\n"
			      "        out = model(x)\n"
			      "        loss = (out - y).mean()\n"
			      "        history.append(out)  # for a plot\n"
			      "        small.append(loss.item())\n",
			      k),
			 1);
	assert_int_equal(k[0].line, 7);
	assert_int_equal(k[0].what, KEEP_LIST);
	assert_true(k[0].local);
	assert_int_equal(k[0].from, 4);
	assert_int_equal(k[0].to, 8);
	assert_string_equal(k[0].function, "train");
	assert_string_equal(k[0].text, "history.append(out)");
	assert_int_equal(k[0].score, 8);
}

/* Each is a whole program, and the line that keeps; 0: none does. */
static const struct {
	int line;
	const char *text;
} cases[] = {
	/* no loop keeps it: made in each turn, or gone with the function */
	{ 0, "for b in data:\n    xs = []\n    for x in b:\n        pass\n    "
	     "xs.append(f(b))\n" },
	{ 0, "def f(b):\n    xs = []\n    xs.append(g(b))\n    return xs\n" },
	/* bounded, emptied, taken from */
	{ 4, "from collections import deque\nd = deque(maxlen=n or None)\nfor x in y:\n    "
	     "d.append(f(x))\n" },
	{ 0, "from collections import deque\nd = deque(maxlen=9)\nfor x in y:\n    "
	     "d.append(f(x))\n" },
	{ 0, "a = []\nfor x in y:\n    a.append(f(x))\n    a.pop(0)\n" },
	{ 0, "a = []\nfor x in y:\n    a.append(f(x))\n    if z:\n        a = []\n" },
	{ 0, "a = []\nfor x in y:\n    a.append(f(x))\n    if len(a) > 9:\n        a = "
	     "a[1:]\n" },
	/* numbers */
	{ 0, "a = []\nfor x in y:\n    a.append(loss.item())\n" },
	{ 0, "a = []\nfor x in y:\n    v = float(f(x))\n    a.append(v)\n" },
	{ 0, "n = 0\nfor x in y:\n    n += 1\n" },
	{ 0, "import torch\nn = 0.0\nfor x in y:\n    loss = f(x)\n    n += loss.item()\n" },
	/* a key that is always the same, an array that is filled */
	{ 0, "d = {}\nfor x in y:\n    d['loss'] = f(x)\n" },
	{ 0, "d = np.zeros(9)\nfor x in y:\n    d[x] = f(x)\n" },
	/* a constructor and the text of a string */
	{ 0, "class A:\n    def __init__(self):\n        for x in y:\n            "
	     "self.a.append(f(x))\n" },
	{ 0, "a = []\nfor x in y:\n    b = 'a.append(f(x))'\n" },
	{ 0, "for x in y:\n    sys.path.append(f(x))\n" },
	/* kept */
	{ 5, "import torch\nn = 0.0\nfor x in y:\n    loss = f(x)\n    n += loss\n" },
	{ 3, "d = {}\nfor k, x in y:\n    d[k] = f(x)\n" },
	{ 4, "import collections as c\nd = c.defaultdict(list)\nfor k in z:\n    "
	     "d[k].append(g(k))\n" },
	{ 3, "a = []\nwhile go():\n    a += [f(x)]\n" },
	{ 3, "a = np.zeros(1)\nwhile go():\n    a = np.concatenate((a, f(x)))\n" },
	{ 4, "LOG = []\ndef step(x):\n    out = f(x)\n    LOG.append(out)\n" },
	{ 4, "class Net:\n    seen = []\n    def forward(self, x):\n        "
	     "self.seen.append(x.clone())\n" },
	{ 6, "def watch(net):\n    feats = []\n    def hook(m, i, o):\n        pass\n"
	     "    def other(m, i, o):\n        feats.append(o.detach())\n    return hook\n" },
	{ 3, "def watch(net):\n    feats = []\n    net.hook(lambda m, i, o: "
	     "feats.append(o))\n" },
	{ 1, "@functools.lru_cache(maxsize=None)\ndef load(i):\n    return read(i)\n" },
	{ 0, "@functools.lru_cache(maxsize=64)\ndef load(i):\n    return read(i)\n" },
	{ 5, "class D:\n    def __init__(self):\n        self.cache = {}\n    def "
	     "__getitem__(self, i):\n"
	     "        self.cache[i] = read(i)\n        return self.cache[i]\n" },
	{ 3, "class D:\n    def __init__(self, n):\n        self.a = [{'id': i} for i in "
	     "range(n)]\n"
	     "    def __getitem__(self, i):\n        return self.a[i]\n" },
	{ 3, "a = []\r\nfor x in y:\r\n    a.append(f(x))\r\n" },
};

static void styles(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct keep k[KEEPS_OF_FILE] = { 0 };
		size_t n = scan(cases[i].text, k);
		int line = n ? k[0].line : 0;

		if (line != cases[i].line)
			fail_msg("line %d, not %d, of:\n%s", line, cases[i].line, cases[i].text);
	}
}

static void the_best_come_first(void **state)
{
	struct keep k[KEEPS_OF_FILE];
	static const char plain[] =
	    "    plain.append(z)\n    plain.append(z)\n    plain.append(z)\n";
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text),
		 "import torch\nplain, kept = [], []\nfor x in y:\n    out = net(x)\n%s%s%s%s    "
		 "kept.append(out)\n",
		 plain, plain, plain, plain);
	assert_int_equal(scan(text, k), KEEPS_OF_FILE);
	assert_int_equal(k[0].line, 17);
	for (size_t i = 1; i < KEEPS_OF_FILE; i++) {
		assert_true(k[i].score < k[0].score);
		assert_int_equal(k[i].line, 4 + (int)i);
	}
}

static const char *const pieces[] = {
	"(",
	"[",
	"'",
	"\"\"\"",
	"\\",
	"a.append(",
	"for x in y:\n ",
	"def f(",
	"a[",
	"]",
	"a=",
	"\n\t",
	"\0",
	"class A:\n",
	"=",
	"+=",
	"@",
	"#",
	"\xff",
	".",
	"@cache\n",
	";",
	"if x:\n",
	"retain_graph=True",
	",",
};

/* Each piece over and over, in a buffer that ends where the text does. */
static void each_alone(void)
{
	struct keep k[KEEPS_OF_FILE];

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t n = strlen(pieces[i]) ? strlen(pieces[i]) : 1, length = n * 300;
		char *tight = malloc(length);

		assert_non_null(tight);
		for (size_t o = 0; o < length; o += n)
			memcpy(tight + o, pieces[i], n);
		for (size_t cut = 0; cut < n; cut++)
			assert_true(keeps_scan(tight, length - cut, k) <= KEEPS_OF_FILE);
		free(tight);
	}
}

/* Whatever a file is, it is looked through in bounded time and nothing is read outside of it. */
static void hostile_sources(void **state)
{
	struct keep k[KEEPS_OF_FILE];
	size_t many = 400 << 10, at = 0;
	char *text = malloc(many + 1);
	uint64_t random = 88172645463325252u;

	(void)state;
	assert_non_null(text);
	assert_int_equal(keeps_scan("", 0, k), 0);
	assert_int_equal(keeps_scan("\0\0", 2, k), 0);
	each_alone();
	/* and any mixture of them */
	while (at < many) {
		const char *p;
		size_t n;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		p = pieces[random % (sizeof(pieces) / sizeof(pieces[0]))];
		n = strlen(p) ? strlen(p) : 1;
		n = n < many - at ? n : many - at;
		memcpy(text + at, p, n);
		at += n;
	}
	for (size_t n = many; n; n /= 3)
		assert_true(keeps_scan(text, n, k) <= KEEPS_OF_FILE);
	free(text);
}

static void too_large_is_left_alone(void **state)
{
	size_t n = SOURCE_BYTES_MAX + 1;
	char *text = calloc(1, n);
	struct keep k[KEEPS_OF_FILE];

	(void)state;
	assert_non_null(text);
	memset(text, '\n', n);
	memcpy(text, "a = []\nfor x in y:\n    a.append(f(x))\n", 38);
	assert_int_equal(keeps_scan(text, n, k), 0);
	assert_int_equal(keeps_scan(text, n - 1, k), 1);
	free(text);
}

/* Time of this thread alone, s: nothing else that runs counts. */
static double scan_cost(const struct buf *text, struct keep *k, size_t *ret_n)
{
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	*ret_n = keeps_scan(text->data, text->len, k);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Many uses inside of many functions, in a file that is as large as may be: a quarter of a minute once. What comes
 * first is told. */
static void nested_without_end(void **state)
{
	struct keep k[KEEPS_OF_FILE];
	auto_done(buf) struct buf b = { 0 };
	size_t n;

	(void)state;
	buf_str(&b, "def first(y):\n    kept = []\n    for x in y:\n        kept.append(f(x))\n");
	for (int i = 0; i < 46; i++)
		buf_printf(&b, "%*sdef f%d():\n", i, "", i);
	for (int i = 0; i < 100; i++)
		buf_printf(&b, "%46sa.append((a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a))\n", "");
	while (b.len + 200 < SOURCE_BYTES_MAX)
		buf_printf(&b, "%46sc, c, c, c, c, c, c, c, c, c = f(a, a, a, a, a, a, a)\n", "");
	assert_true(scan_cost(&b, k, &n) < 5);
	assert_true(n >= 1);
	assert_int_equal(k[0].line, 4);
}

/* A class of thousands of methods and attributes takes no longer than its lines: what is behind it is found. */
static void a_class_of_thousands(void **state)
{
	struct keep k[KEEPS_OF_FILE];
	auto_done(buf) struct buf b = { 0 };
	size_t n;

	(void)state;
	buf_str(&b, "class A:\n");
	for (int i = 0; i < 4900; i++)
		buf_printf(&b, " def f%d(self):\n", i);
	buf_str(&b, " def __init__(self):\n");
	for (int i = 0; i < 4900; i++)
		buf_str(&b, "  self.x=1\n");
	buf_str(&b, "kept = []\nfor x in y:\n    kept.append(f(x))\n");
	assert_true(scan_cost(&b, k, &n) < 1);
	assert_int_equal(n, 1);
	assert_string_equal(k[0].text, "kept.append(f(x))");
}

static void as_a_place_and_back(void **state)
{
	struct keep k = { .what = KEEP_DICT,
			  .local = true,
			  .score = 7,
			  .from = 50,
			  .to = 61,
			  .text = "self.cache[i] = x" },
		    back;
	struct place p = {
		.kind = PLACE_KEEPS, .line = 57, .file = "/home/u/train.py", .function = "train"
	};
	char text[200];

	(void)state;
	keep_write(&k, text, sizeof(text));
	assert_string_equal(text, "dict local 7 50-61 self.cache[i] = x");
	p.source = text;
	assert_true(keep_read(&p, &back));
	assert_int_equal(back.what, KEEP_DICT);
	assert_true(back.local);
	assert_int_equal(back.score, 7);
	assert_int_equal(back.line, 57);
	assert_int_equal(back.from, 50);
	assert_int_equal(back.to, 61);
	assert_string_equal(back.text, "self.cache[i] = x");
	p.kind = PLACE_PYTHON;
	assert_false(keep_read(&p, &back));
}

static void texts_of_others(void **state)
{
	static const char *const texts[] = {
		"",
		"list",
		"list local",
		"list local 7",
		"list local 7 50",
		"list local 7 50-",
		"tree local 7 1-2 x",
		"list local 70 1-2 x",
		"list local 7 99999999999-2 x",
		"list local -7 1-2 x",
		"list local 18446744073709551616 1-2 x",
	};
	struct place p = { .kind = PLACE_KEEPS, .line = 1, .file = "a.py", .function = "" };
	struct keep k;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		p.source = texts[i];
		assert_false(keep_read(&p, &k));
	}
	p.source = "list long 7 1-2 \033[2Jx";
	assert_true(keep_read(&p, &k));
	assert_string_equal(k.text, "?[2Jx");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statements_and_blocks),
		cmocka_unit_test(a_list_of_outputs),
		cmocka_unit_test(styles),
		cmocka_unit_test(the_best_come_first),
		cmocka_unit_test(hostile_sources),
		cmocka_unit_test(too_large_is_left_alone),
		cmocka_unit_test(nested_without_end),
		cmocka_unit_test(a_class_of_thousands),
		cmocka_unit_test(as_a_place_and_back),
		cmocka_unit_test(texts_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * Signs of each statement, added up over the function and the blocks it is in; then a row of conditions on the sums.
 */
#include "explain/does/ahead.h"
#include "explain/does/does.h"
#include "explain/does/elements.h"
#include "explain/does/held.h"
#include "explain/does/lookup.h"
#include "explain/does/watch.h"
#include "explain/ledger/arithmetic.h"

#include <stdlib.h>
#include <string.h>

/* A file that was made to take long is left half done: a tenth of a second or two. */
enum { LOOKS_MAX = 20 * 1000 * 1000, DECORATORS_MAX = 8 };

enum sign {
	SIGN_LEARNS = 1 << 0, /* gradients, an optimiser, or a call of something that trains */
	SIGN_NO_GRAD =
	    1 << 1, /* gradients are switched off, or the model is set to be asked only */
	SIGN_CHANGES = 1 << 2,   /* tensors are changed in place: averages of weights are kept so */
	SIGN_PLAYS = 1 << 3,     /* an environment is asked for its next state */
	SIGN_LOOPS = 1 << 4,     /* has a loop */
	SIGN_TALLIES = 1 << 5,   /* adds up, collects, compares */
	SIGN_STATE = 1 << 6,     /* names the state of the model */
	SIGN_SAVES = 1 << 7,     /* writes objects or arrays */
	SIGN_WRITES = 1 << 8,    /* writes anything */
	SIGN_READS = 1 << 9,     /* reads files */
	SIGN_GIVES = 1 << 10,    /* gives back a value */
	SIGN_RESTORES = 1 << 11, /* gives the model its state back */
	SIGN_SPLITS = 1 << 12,   /* takes text apart */
	SIGN_LOOKS_UP = 1 << 13, /* in a vocabulary */
	SIGN_WEIGHTS = 1 << 14,  /* goes over the model's weights, for whatever it is */
	SIGN_RAW = 1 << 15,      /* their bytes as they are */
	SIGN_TEACHES = 1 << 16,  /* arrays are changed by a rate times a gradient */
	SIGN_MATRIX = 1 << 17,   /* multiplies matrices */
	SIGN_SURELY =
	    1 << 18, /* teaches, and calls the rate first of all, or the gradient, by its name */
	SIGN_LESSENS = 1 << 19, /* weights, called so, are changed by what was computed elsewhere */
	SIGN_RATE = 1 << 20,    /* multiplies what is there by a rate */
	SIGN_EACH = 1 << 21,    /* goes over words within a statement */
	SIGN_WORDS = 1 << 22,   /* takes text apart into words: no lists of numbers with commas */
	SIGN_IDS = 1 << 23,     /* names numbers of things */
	SIGN_STRETCH = 1 << 24, /* looks a stretch of a text up */
	SIGN_ASKS = 1 << 25,    /* the model is set to be asked only */
	SIGN_LESSONS = 1 << 26  /* what was played is kept to be learned from */
};

static const struct {
	unsigned signs;
	const char *any; /* of these pieces is in the statement */
} pieces[] = {
	{ SIGN_LEARNS, ".backward(|zero_grad(|GradientTape|value_and_grad(|.minimize(|partial_fit(|"
		       "train_on_batch(|"
		       "autograd.grad(|optimizer.step(|optim.step(|opt.step(|optimiser.step(|"
		       "scaler.step(|trainer.step(|"
		       "apply_gradients(|autograd.record(" },
	{ SIGN_NO_GRAD, "no_grad(|inference_mode(|set_grad_enabled(False|.eval()|stop_gradient(" },
	{ SIGN_ASKS, ".eval()" },
	{ SIGN_LESSONS, ".append(|.add(|.insert(|.extend(|.push(|.store(|.put(|remember(|log_prob|"
			"+= [|+= ((|] = " },
	{ SIGN_CHANGES, ".index_add_(|.scatter_add_(|.mul_(|.add_(|.copy_(|.lerp_(|.sub_(|.div_(|."
			"fill_(|.zero_(|.clamp_(|."
			"data =|.data.|.requires_grad" },
	{ SIGN_RESTORES, "load_state_dict(|set_weights(|set_state" },
	{ SIGN_TALLIES,
	  "+=|.append(|.extend(|.sum(|.mean(|mean(|sum(|argmax(|.update(|.add(|topk(" },
	{ SIGN_SPLITS,
	  ".split(|.lower()|.findall(|.finditer(|re.sub(|.casefold()|.isalpha()|.isalnum()|"
	  "unicodedata.|.translate(|.splitlines(|.partition(" },
	{ SIGN_WORDS, ".split()|.findall(|.finditer(|re.split(|.casefold()|.isalpha()|."
		      "isalnum()" },
	{ SIGN_LOOKS_UP, "vocab|stoi|merges|word2|w2i|token|lexicon|bpe|pieces" },
	{ SIGN_STATE, "state_dict()|get_weights(" },
	{ SIGN_WEIGHTS, ".parameters()|named_parameters(" },
	{ SIGN_MATRIX, " @ |.dot(|matmul(|np.outer(|einsum(" },
	{ SIGN_RAW, "tobytes(|memoryview(|struct.pack(" },
	{ SIGN_SAVES | SIGN_WRITES, "torch.save(|pickle.dump(|np.save(|np.savez|numpy.save|joblib."
				    "dump(|.tofile(|save_file(|save_pretrained(|"
				    "marshal.dump(|.save_weights(|save_model(|save_parameters(" },
	{ SIGN_WRITES, ".write(|.writelines(|.writerow(|.writerows(|json.dump(|.to_csv(|.to_json(|."
		       "to_parquet(|.savefig(|"
		       "add_scalar(|add_scalars(|add_histogram(|add_image(|add_images(|add_figure(|"
		       ".commit()|.write_text(|"
		       ".write_bytes(|wandb.log(|log_metric|.flush()|fsync(|.writestr(|.put_object("
		       "|.to_sql(|.to_pickle(|"
		       "savetxt(|imsave(|imwrite(|.executemany(" },
	{ SIGN_READS, "np.load(|Image.open(|read_csv(|.read(|.readline(|.readlines(|.read_bytes()|."
		      "read_text(|json.load(|"
		      "json.loads(|pickle.load(|pickle.loads(|torch.load(|imread(|imdecode(|."
		      "fetchone(|.fetchall(|.fetchmany(|"
		      "np.fromfile(|np.memmap(|loadtxt(|genfromtxt(|csv.reader(|csv.DictReader(|."
		      "extractfile(|ZipFile(|"
		      "tarfile.open(|h5py.File(|wave.open(|wavfile.read(|decompress(|frombuffer(|"
		      "read_parquet(|read_json(|"
		      "read_pickle(|.readframes(|fromstring(|joblib.load(|.getline(" },
};

/* What loops over single elements do not do: learn from what was computed, ask, save, write and read. */
static const unsigned not_elements = SIGN_LEARNS | SIGN_NO_GRAD | SIGN_PLAYS | SIGN_STATE |
				     SIGN_SAVES | SIGN_WRITES | SIGN_READS | SIGN_RESTORES |
				     SIGN_TEACHES;

struct sums {
	unsigned signs;
	bool
	    head; /* gradients are off by the head of the block itself, or by a decorator of the function */
	bool held; /* the loop goes over what was held out */
	bool yields;
};

struct scanner {
	struct py_source s;
	const char *raw;
	size_t n, left;
	struct sums *of; /* by block */
	struct does *ret;
	size_t found;
};

static bool word_at(struct span s, const char *p, const char *word)
{
	size_t n = strlen(word);
	const char *end = s.p + s.n;

	return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 &&
	       (p == s.p || !py_is_word(p[-1])) && (p + n == end || !py_is_word(p[n]));
}

/* The statement as it was written, with its strings. Clean text has the same length. */
static struct span raw_of(const struct scanner *x, const struct py_statement *t)
{
	size_t at = (size_t)(t->text - x->s.clean);

	return at + t->n <= x->n ? (struct span){ x->raw + at, t->n } : (struct span){ 0 };
}

/* `open(path, "wb")`, `gzip.open(path, mode="at")`: SIGN_WRITES, `open(path)`: SIGN_READS, none: 0. */
static unsigned opens(const struct scanner *x, const struct py_statement *t)
{
	static const char *const writing[] = {
		"\"w", "\"a", "\"x", "'w", "'a", "'x", "\"r+", "'r+"
	};
	struct span clean = span_of(t), raw = raw_of(x, t);
	const char *at = clean.n ? memmem(clean.p, clean.n, "open(", 5) : NULL;
	struct span inside, piece;
	bool first = true, writes = false;

	if (!at || !raw.n)
		return 0;
	inside = span_inside(clean, at + 4);
	while (span_next(&inside, &piece)) {
		const char *own = raw.p + (piece.p - clean.p);

		/* a mode is a short string of its own, and never the first */
		for (size_t i = 0; !first && i < sizeof(writing) / sizeof(writing[0]); i++) {
			const char *hit = memmem(own, piece.n, writing[i], strlen(writing[i]));

			writes |= hit && (size_t)(own + piece.n - hit) <= 6;
		}
		first = false;
	}
	return writes ? SIGN_WRITES : SIGN_READS;
}

/* `w -= lr * g`; or `g *= lr` here and `weight -= g` there */
static unsigned teaches(struct span s)
{
	unsigned signs = 0;
	char line[256];

	if (!s.n || s.n >= sizeof(line))
		return 0;
	memcpy(line, s.p, s.n);
	line[s.n] = '\0';
	signs |= line_lessens_weight(line) ? SIGN_LESSENS : 0;
	signs |= strstr(line, " *= ") && line_names_rate(line) ? SIGN_RATE : 0;
	if (line_teaches(line))
		signs |= SIGN_TEACHES | (line_teaches_surely(line) ? SIGN_SURELY : 0);
	return signs;
}

static bool has_word(struct span s, const char *word)
{
	for (const char *p = s.p;
	     (p = s.n ? memmem(p, s.n - (size_t)(p - s.p), word, strlen(word)) : NULL); p++)
		if (word_at(s, p, word))
			return true;
	return false;
}

static unsigned signs_of(const struct scanner *x, const struct py_statement *t)
{
	struct span s = span_of(t);
	unsigned signs = opens(x, t);

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		if (span_has_any(s, pieces[i].any))
			signs |= pieces[i].signs;
	if (text_calls_training(s))
		signs |= SIGN_LEARNS;
	signs |= teaches(s);
	signs |= has_word(s, "ids") ? SIGN_IDS : 0;
	if (lookup_of_stretch(s))
		signs |= SIGN_SPLITS | SIGN_LOOKS_UP | SIGN_STRETCH;
	if (signs & (SIGN_WORDS | SIGN_STRETCH) && span_has(s, " for ") && span_has(s, " in "))
		signs |= SIGN_EACH;
	/* env.step(action): any step but an optimiser's or a schedule's, which have been looked for */
	if (span_has(s, ".step(") && !(signs & SIGN_LEARNS) && !span_has_any(s, "sched|lr_"))
		signs |= SIGN_PLAYS;
	if (span_begins(s, "return") && s.n > 6 && !span_has_any(s, "return None|return path"))
		signs |= SIGN_GIVES;
	return signs;
}

/* `for x, y in self.val_loader:` */
static bool goes_over_held(const struct py_statement *t)
{
	struct span s = span_of(t);
	const char *in = s.n ? memmem(s.p, s.n, " in ", 4) : NULL;

	return in && text_names_held_out(in + 4, s.n - (size_t)(in + 4 - s.p));
}

/* To the block it is in and all around that, up to the function. The head of a block is a statement of the one
 * around it; what it says is said inside of it as well. */
static void add_up(struct scanner *x, const struct py_statement *t, unsigned signs, bool yields)
{
	uint32_t def = py_def_of(&x->s, t->block), b = t->block;

	for (int depth = 0; depth <= SOURCE_DEPTH_MAX; depth++) {
		x->of[b].signs |= signs;
		x->of[b].yields |= yields;
		if (b == def || b == 0)
			return;
		b = x->s.blocks.v[b].parent;
	}
}

static bool decorated(const struct scanner *x, uint32_t head)
{
	for (uint32_t i = 1; i <= DECORATORS_MAX && i <= head; i++) {
		struct span s = span_of(&x->s.statements.v[head - i]);

		if (!s.n || s.p[0] != '@')
			return false;
		if (span_has_any(s, "no_grad|inference_mode"))
			return true;
	}
	return false;
}

static void read_heads(struct scanner *x)
{
	for (size_t b = 1; b < x->s.blocks.n; b++) {
		const struct py_block *k = &x->s.blocks.v[b];
		const struct py_statement *head = &x->s.statements.v[k->head];
		struct span s = span_of(head);

		if (k->kind == PY_DEF)
			x->of[b].head = decorated(x, k->head);
		else if (k->kind == PY_LOOP)
			x->of[b].held = goes_over_held(head);
		else
			x->of[b].head =
			    span_begins(s, "with ") && span_has_any(s, "no_grad(|inference_mode(");
	}
}

static bool has(const struct sums *k, unsigned all, unsigned none)
{
	return (k->signs & all) == all && !(k->signs & none);
}

/* What is run once, or runs everything. */
static bool is_outer(const struct scanner *x, uint32_t def)
{
	static const char *const names[] = { "__init__", "main",   "_main", "run",
					     "cli",      "launch", "serve" };
	const char *name = "";
	struct span s = { .n = py_name_of(&x->s, def, &name) };

	s.p = name;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_is(s, names[i]))
			return true;
	return false;
}

/* Pieces of text, each looked up, or each made numbers of. */
static bool takes_words(const struct sums *k)
{
	return (has(k, SIGN_SPLITS | SIGN_LOOKS_UP, 0) || has(k, SIGN_WORDS | SIGN_IDS, 0)) &&
	       k->signs & (SIGN_LOOPS | SIGN_EACH) &&
	       has(k, 0, SIGN_WRITES | SIGN_NO_GRAD | SIGN_PLAYS | SIGN_READS);
}

/* The first that holds. */
static bool judge(const struct scanner *x, uint32_t b, enum does_what *ret)
{
	const struct sums *k = &x->of[b];
	const unsigned no_test = SIGN_LEARNS | SIGN_CHANGES | SIGN_PLAYS;
	bool def = x->s.blocks.v[b].kind == PY_DEF;

	if (k->held && has(k, 0, no_test)) {
		*ret = DOES_EVALUATE;
		return true;
	}
	if ((k->head ||
	     (def && k->signs & SIGN_NO_GRAD && k->signs & (SIGN_TALLIES | SIGN_GIVES))) &&
	    has(k, SIGN_LOOPS, no_test) && !k->yields) {
		*ret = DOES_EVALUATE;
		return true;
	}
	/* how often it wins: it plays, and keeps nothing of it */
	if (def &&
	    has(k, SIGN_ASKS | SIGN_PLAYS | SIGN_LOOPS | SIGN_GIVES,
		SIGN_LEARNS | SIGN_CHANGES | SIGN_LESSONS) &&
	    !k->yields) {
		*ret = DOES_EVALUATE;
		return true;
	}
	if (def && has(k, SIGN_LESSENS | SIGN_RATE | SIGN_MATRIX, SIGN_LEARNS)) {
		*ret = DOES_TRAIN;
		return true;
	}
	if (has(k, SIGN_TEACHES, SIGN_LEARNS) &&
	    (def ? k->signs & SIGN_LOOPS || has(k, SIGN_MATRIX | SIGN_SURELY, 0) ||
		       has(k, SIGN_CHANGES | SIGN_SURELY, 0)
		 : x->s.blocks.v[b].kind == PY_LOOP)) {
		*ret = DOES_TRAIN;
		return true;
	}
	if (!def || k->signs & SIGN_LEARNS || is_outer(x, b))
		return false;
	/* weights that become text are looked at: norms, histograms, a summary */
	if (has(k, SIGN_WRITES, SIGN_READS | SIGN_RESTORES) && !k->yields &&
	    (k->signs & (SIGN_SAVES | SIGN_STATE) || has(k, SIGN_WEIGHTS | SIGN_RAW, 0))) {
		*ret = DOES_SAVE;
		return true;
	}
	if (has(k, SIGN_WRITES, SIGN_READS | SIGN_GIVES) && !k->yields) {
		*ret = DOES_LOG;
		return true;
	}
	*ret = DOES_TOKENIZE;
	if (takes_words(k) && (k->yields || k->signs & SIGN_GIVES))
		return true;
	*ret = DOES_LOAD;
	return has(k, SIGN_READS, SIGN_WRITES | SIGN_RESTORES | SIGN_NO_GRAD | SIGN_PLAYS) &&
	       (k->yields || k->signs & SIGN_GIVES);
}

/* Blocks come behind what they are in. */
static bool is_told(const struct scanner *x, enum does_what what, const struct py_block *k)
{
	for (size_t i = 0; i < x->found; i++)
		if (x->ret[i].what == what && x->ret[i].from <= k->from && x->ret[i].to >= k->to)
			return true;
	return false;
}

static void tell(struct scanner *x)
{
	for (size_t b = 1; b < x->s.blocks.n && x->found < DOES_RANGES; b++) {
		const struct py_block *k = &x->s.blocks.v[b];
		enum does_what what;

		if (k->kind != PY_CLASS && k->to >= k->from && judge(x, (uint32_t)b, &what) &&
		    !is_told(x, what, k))
			x->ret[x->found++] = (struct does){ what, k->from, k->to };
	}
}

/* The outermost loop of each nest: blocks come behind what they are in. */
static void tell_elements(struct scanner *x)
{
	for (size_t b = 1; b < x->s.blocks.n && x->found < DOES_OF_FILE; b++) {
		const struct py_block *k = &x->s.blocks.v[b];

		if (k->kind == PY_LOOP && k->to >= k->from && has(&x->of[b], 0, not_elements) &&
		    has(&x->of[py_def_of(&x->s, (uint32_t)b)], 0, SIGN_TEACHES | SIGN_MATRIX) &&
		    !is_told(x, DOES_ELEMENTS, k) && elements_loop(&x->s, (uint32_t)b) && x->left)
			x->ret[x->found++] = (struct does){ DOES_ELEMENTS, k->from, k->to };
	}
}

/* "Pool(4)", "mp.Pool(4)", and not "MaxPool(2)". */
static bool calls(struct span s, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = s.p; s.n && (p = memmem(p, s.n - (size_t)(p - s.p), name, n)); p++)
		if (p == s.p || !py_is_word(p[-1]))
			return true;
	return false;
}

/* Where workers, threads and devices come from, DOES_WHATS: nowhere here. Names of variables of the environment are strings. */
static enum does_what made_by(struct span s, struct span raw, bool crews)
{
	if (span_has(s, "DataLoader("))
		return DOES_LOADER;
	if (calls(s, "Pool(") || calls(s, "ThreadPool(") || span_has(s, "PoolExecutor("))
		return DOES_POOL;
	if ((calls(s, "Process(") || calls(s, "Thread(")) && span_has(s, "target"))
		return DOES_STARTS;
	/* `make = Thread if light else Process` ... `make(target=fill, args=(k,), daemon=True)` */
	if (crews && calls(s, "target=") && !span_has(s, "target==") && span_has(s, "args=("))
		return DOES_STARTS;
	if (span_has_any(s, "set_num_threads(|setNumThreads(|threadpool_limits(") ||
	    (span_has_any(s, "environ|putenv(") &&
	     span_has_any(raw, "OMP_NUM_THREADS|OPENBLAS_NUM_THREADS|MKL_NUM_THREADS")))
		return DOES_THREADS;
	/* jax.devices("cpu") */
	if (span_has_any(raw, "\"cpu|'cpu|CPU:") && !span_has_any(raw, "cuda|gpu|GPU"))
		return DOES_WHATS;
	if (calls(s, "Device(") || calls(s, "jax.devices(") || calls(s, "mx.gpu(") ||
	    calls(s, "set_device(") || span_has(s, ".cuda(") ||
	    (span_has_any(s, "device(|device = |device=|.to(") &&
	     span_has_any(raw, "\"cuda|'cuda|GPU:")))
		return DOES_DEVICE;
	return DOES_WHATS;
}

/* What is made for asking only is none of the training's. */
static void tell_makers(struct scanner *x)
{
	struct span all = { x->raw, x->n };
	bool crews = span_has_any(all, "Process|Thread");
	bool chosen = false; /* a device: what follows goes to the same */

	for (size_t i = 0; i < x->s.statements.n && x->found < DOES_OF_FILE; i++) {
		const struct py_statement *t = &x->s.statements.v[i];
		struct span s = span_of(t);
		enum does_what what;

		if (!py_look(&x->s, 2 * t->n))
			return;
		if (span_begins(s, "class ") || span_begins(s, "def ") ||
		    span_begins(s, "async def ") || span_begins(s, "import ") ||
		    span_begins(s, "from "))
			continue;
		what = made_by(s, raw_of(x, t), crews);
		if (what == DOES_WHATS || (what == DOES_DEVICE && chosen) ||
		    text_names_held_out(s.p, s.n))
			continue;
		chosen |= what == DOES_DEVICE;
		x->ret[x->found++] = (struct does){ what, t->line, t->line };
	}
}

static void tell_line(struct scanner *x, enum does_what what, size_t statement)
{
	int32_t line = x->s.statements.v[statement].line;

	if (x->found < DOES_OF_FILE)
		x->ret[x->found++] = (struct does){ what, line, line };
}

/* In loops that learn: what only watches, and what loads ahead. */
static void tell_of_loops(struct scanner *x)
{
	bool *learns = calloc(x->s.blocks.n, 1), *watch = calloc(x->s.statements.n + 1, 1);

	for (size_t b = 1; learns && b < x->s.blocks.n; b++)
		learns[b] = x->s.blocks.v[b].kind == PY_LOOP && x->of[b].signs & SIGN_LEARNS;
	if (learns && watch && x->n == x->s.n && watch_find(&x->s, x->raw, learns, watch))
		for (size_t i = 0; i < x->s.statements.n; i++)
			if (watch[i])
				tell_line(x, DOES_WATCH, i);
	for (size_t i = 0; learns && i < x->s.statements.n && x->left; i++)
		if (ahead_made(&x->s, learns, i))
			tell_line(x, DOES_AHEAD, i);
	free(learns);
	free(watch);
}

static void read_statements(struct scanner *x)
{
	for (size_t i = 0; i < x->s.statements.n; i++) {
		const struct py_statement *t = &x->s.statements.v[i];
		unsigned signs;

		/* some sixty pieces are looked for */
		if (!py_look(&x->s, 8 * t->n))
			return;
		signs = signs_of(x, t);
		add_up(x, t, signs, has_word(span_of(t), "yield"));
	}
	for (size_t b = 1; b < x->s.blocks.n; b++)
		if (x->s.blocks.v[b].kind == PY_LOOP)
			add_up(x, &x->s.statements.v[x->s.blocks.v[b].head], SIGN_LOOPS, false);
}

size_t does_scan(const char *text, size_t n, struct does ret[DOES_OF_FILE])
{
	struct scanner x = { .raw = text, .n = n, .left = LOOKS_MAX, .ret = ret };

	if (py_source_read(&x.s, text, n) == 0) {
		x.s.left = &x.left;
		x.of = calloc(x.s.blocks.n, sizeof(*x.of));
	}
	if (x.of) {
		read_heads(&x);
		read_statements(&x);
		/* what speaks against it may not have been seen */
		if (x.left) {
			tell(&x);
			tell_makers(&x);
			tell_of_loops(&x);
			tell_elements(&x);
		}
	}
	free(x.of);
	py_source_done(&x.s);
	return x.found;
}

/* SPDX-License-Identifier: MIT */
#include "explain/does/signs.h"

#include "explain/does/held.h"
#include "explain/does/lookup.h"
#include "explain/ledger/arithmetic.h"

#include <string.h>

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
	{ SIGN_ANSWERS, ".forward(|forward(|predict(|.predict_proba(|net(|model(|self(|logits(" },
	{ SIGN_BACK, "backward|backprop|grad|delta|update(|.step(|step(|descend(|learn|genome|"
		     "population|theta|mutat|perturb|sigma|cross_entropy|criterion" },
	{ SIGN_SENDS, ".post(|requests.put(|session.put(" },
	{ SIGN_SPLITS,
	  ".split(|.lower()|.findall(|.finditer(|re.sub(|.casefold()|.isalpha()|.isalnum()|"
	  "unicodedata.|.translate(|.splitlines(|.partition(" },
	{ SIGN_WORDS, ".split()|.findall(|.finditer(|re.split(|.casefold()|.isalpha()|."
		      "isalnum()" },
	{ SIGN_LOOKS_UP, "vocab|stoi|merges|word2|w2i|token|lexicon|bpe|pieces" },
	{ SIGN_STATE, "state_dict()|get_weights(" },
	{ SIGN_WEIGHTS, ".parameters()|named_parameters(" },
	{ SIGN_MATRIX, " @ |.dot(|matmul(|np.outer(|einsum(" },
	{ SIGN_RAW,
	  "tobytes(|memoryview(|struct.pack(|struct.unpack(|frombuffer(|loads(|.json()|.content" },
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

static bool word_at(struct span s, const char *p, const char *word)
{
	size_t n = strlen(word);
	const char *end = s.p + s.n;

	return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 &&
	       (p == s.p || !py_is_word(p[-1])) && (p + n == end || !py_is_word(p[n]));
}

/* `open(path, "wb")`, `gzip.open(path, mode="at")`: SIGN_WRITES, `open(path)`: SIGN_READS, none: 0. */
static unsigned opens(struct span clean, struct span raw)
{
	static const char *const writing[] = {
		"\"w", "\"a", "\"x", "'w", "'a", "'x", "\"r+", "'r+"
	};
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

/* `conn.request("POST", path, body)`, `urlopen(url, data=body)` */
static bool sends(struct span s, struct span raw)
{
	return (span_has(s, ".request(") &&
		span_has_any(raw, "\"POST\"|'POST'|\"PUT\"|'PUT'|\"PATCH\"|'PATCH'")) ||
	       (span_has(s, "urlopen(") && span_has(s, "data="));
}

/* More than whether it worked: `return True`, `return reply.status`. */
static bool gives(struct span s)
{
	static const char *const whether[] = { ".status", ".ok", ".status_code" };
	struct span value;

	if (!span_begins(s, "return") || s.n <= strlen("return") ||
	    span_has_any(s, "return None|return path"))
		return false;
	value = span_trim((struct span){ s.p + strlen("return"), s.n - strlen("return") });
	if (span_is(value, "True") || span_is(value, "False"))
		return false;
	for (size_t i = 0; i < sizeof(whether) / sizeof(whether[0]); i++) {
		size_t n = strlen(whether[i]);

		if (value.n > n && span_is_name(value) &&
		    memcmp(value.p + value.n - n, whether[i], n) == 0)
			return false;
	}
	return true;
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

bool signs_have_word(struct span s, const char *word)
{
	for (const char *p = s.p;
	     (p = s.n ? memmem(p, s.n - (size_t)(p - s.p), word, strlen(word)) : NULL); p++)
		if (word_at(s, p, word))
			return true;
	return false;
}

unsigned signs_of(struct span s, struct span raw)
{
	unsigned signs = opens(s, raw);

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		if (span_has_any(s, pieces[i].any))
			signs |= pieces[i].signs;
	if (text_calls_training(s))
		signs |= SIGN_LEARNS;
	signs |= teaches(s);
	signs |= signs_have_word(s, "ids") ? SIGN_IDS : 0;
	if (lookup_of_stretch(s))
		signs |= SIGN_SPLITS | SIGN_LOOKS_UP | SIGN_STRETCH;
	if (signs & (SIGN_WORDS | SIGN_STRETCH) && span_has(s, " for ") && span_has(s, " in "))
		signs |= SIGN_EACH;
	/* env.step(action): any step but an optimiser's or a schedule's, which have been looked for */
	if (span_has(s, ".step(") && !(signs & SIGN_LEARNS) && !span_has_any(s, "sched|lr_"))
		signs |= SIGN_PLAYS;
	/* `(net.forward(x).argmax(1) == y).sum()` */
	signs |= span_has(s, "argmax(") && span_has(s, "==") ? SIGN_TRUTH : 0;
	/* `self.w[y] += x`: of a perceptron that is learning, of a tally none is lost */
	signs |= span_has_any(s, "] += |] -= ") ? SIGN_BACK : 0;
	signs |= sends(s, raw) ? SIGN_SENDS : 0;
	signs |= gives(s) ? SIGN_GIVES : 0;
	return signs;
}

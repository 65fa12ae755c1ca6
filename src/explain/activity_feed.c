/* SPDX-License-Identifier: MIT
 *
 * Lines of the loop that trains which make what the model is given, whatever their functions are called: by the names
 * they assign, which a later line of the same function hands to the framework.
 *
 *	for part in pandas.read_csv(path, chunksize=4096):
 *		rows = clean(part)            <- feeds the next line
 *		x, y = featurise(rows)        <- feeds the model
 *		loss = criterion(net(x), y)   <- the framework
 *		table.append(accuracy(loss))  <- feeds nothing
 *
 * It is no input what was made of what the model said in the same function before (advantages, pseudo labels), nor
 * what computes with tensors: that is the model, written by hand. Only where nobody else loads: with workers, such lines
 * are what the loop does besides.
 */
#include "explain/activity_part.h"

#include "explain/does/held.h"
#include "explain/ledger/arithmetic.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Of the time of the framework in all: a line with less is not where the model is. */
static const double model_least = 0.02;
/* Of its own time: what has more of the framework below it is no preparation. */
static const double framework_most = 0.2;
/* Lines of the program that are looked at, and names of one: no program that people write has more. */
enum { LINES_MAX = 512, NAMES_MAX = 12 };

struct word {
	const char *text;
	size_t n;
};

struct feed_line {
	const struct place *p;
	uint64_t function;
	double framework, nameless; /* seconds below it */
	int64_t last_ns;            /* when it was seen last */
	struct word names[NAMES_MAX];
	size_t n_names;
	const char *right;      /* what it computes them of */
	bool model, may, feeds; /* may: nothing speaks against its feeding */
};

struct feed {
	VEC(struct feed_line) lines;
	struct map by_place; /* -> line + 1 */
	double framework;
	int64_t model_first_ns, model_last_ns; /* when the framework was seen */
	uint16_t next[LINES_MAX]; /* lines that feed and whose makers are not known yet */
	size_t n_next;
};

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The "=" of an assignment, also of "+=": not that of a comparison or of a keyword in a call. NULL: none. */
static const char *assigns_at(const char *text)
{
	for (const char *p = text; *p && !strchr("(:#'\"{", *p); p++) {
		if (*p == '[') {
			p += strcspn(p, "]");
			if (!*p)
				return NULL;
		}
		if (*p == '=')
			return p > text && p[1] != '=' && !strchr("=<>!", p[-1]) ? p : NULL;
	}
	return NULL;
}

/* "items.append(decode(p))": it makes items. NULL: it is none of that. */
static const char *appends_at(const char *text)
{
	static const char *const calls[] = { ".append(", ".extend(", ".insert(", ".update(" };
	size_t n = 0;

	while (is_name(text[n]) || text[n] == '.') {
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			if (n && strncmp(text + n, calls[i], strlen(calls[i])) == 0)
				return text + n;
		n++;
	}
	return NULL;
}

/* The names left of `end`: of "self.x, y[i]" x and y. */
static void read_names(struct feed_line *l, const char *end)
{
	const char *p = l->p->source;

	while (p < end && l->n_names < NAMES_MAX) {
		const char *start = p;

		if (*p == '[') {
			p += strcspn(p, "]");
			continue;
		}
		while (p < end && is_name(*p))
			p++;
		if (p == start) {
			p++;
			continue;
		}
		/* what has an attribute set is not made here, the attribute is */
		if (*p != '.' || p == end)
			l->names[l->n_names++] = (struct word){ start, (size_t)(p - start) };
	}
}

static void read_line(struct feed_line *l)
{
	const char *text = l->p->source, *at = assigns_at(text);

	l->right = text;
	if (at) {
		read_names(l, at);
		l->right = at + 1;
		return;
	}
	at = appends_at(text);
	if (at) {
		read_names(l, at);
		l->right = at;
	}
}

static bool mentions(const char *text, const struct word *w)
{
	size_t len = strlen(text);

	for (const char *at = text; (at = memmem(at, len - (size_t)(at - text), w->text, w->n));
	     at++) {
		bool starts = at == text || !(is_name(at[-1]));

		if (starts && !is_name(at[w->n]))
			return true;
	}
	return false;
}

static bool uses(const struct feed_line *user, const struct feed_line *maker)
{
	for (size_t i = 0; i < maker->n_names; i++)
		if (mentions(user->right, &maker->names[i]))
			return true;
	return false;
}

static struct feed_line *line_at(struct feed *f, const struct place *p, uint32_t id)
{
	struct feed_line *l;
	uint32_t at;

	if (map_get(&f->by_place, id, &at))
		return &f->lines.v[at - 1];
	l = f->lines.n < LINES_MAX ? vec_push(&f->lines) : NULL;
	if (!l || !map_put(&f->by_place, id, (uint32_t)f->lines.n))
		return NULL;
	*l = (struct feed_line){ .p = p, .function = place_code(p) };
	read_line(l);
	return l;
}

/* False: out of memory, or a program of more lines than are looked at. */
static bool note_lines(const struct activity *a, const struct act_thread *t,
		       const struct loop_sense *sense, struct feed *f)
{
	uint32_t places[STACK_DEPTH_MAX];

	for (size_t k = t->row; k < t->row + t->n_rows; k++) {
		const struct act_row *r = &a->rows.v[k];
		bool framework = row_is_framework(a, sense, r);
		bool nameless = !framework && row_is_nameless(r);
		size_t n = framework || nameless
			       ? stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX)
			       : 0;

		if (framework) {
			f->model_first_ns = f->framework > 0 && f->model_first_ns < r->first_ns
						? f->model_first_ns
						: r->first_ns;
			f->model_last_ns =
			    f->model_last_ns > r->last_ns ? f->model_last_ns : r->last_ns;
			f->framework += r->seconds;
		}
		for (size_t i = 0; i < n; i++) {
			const struct place *p = stack_book_find_place(a->book, places[i]);
			struct feed_line *l;

			if (!loop_place_is_own(p) || loop_place_is_head(p))
				continue;
			l = line_at(f, p, places[i]);
			if (!l)
				return false;
			*(framework ? &l->framework : &l->nameless) += r->seconds;
			l->last_ns = l->last_ns > r->last_ns ? l->last_ns : r->last_ns;
		}
	}
	return true;
}

/* Is this name made by another line before, which is no model's? Then it is that one that is used. */
static bool is_made_before(const struct feed *f, const struct feed_line *l, const struct word *w)
{
	for (size_t i = 0; i < f->lines.n; i++) {
		const struct feed_line *m = &f->lines.v[i];

		if (m->model || m->function != l->function || m->p->line >= l->p->line)
			continue;
		for (size_t k = 0; k < m->n_names; k++)
			if (m->names[k].n == w->n && memcmp(m->names[k].text, w->text, w->n) == 0)
				return true;
	}
	return false;
}

/* Does it use what the model of the same function said, before or in the turn before? */
static bool of_the_model(const struct feed *f, const struct feed_line *l)
{
	for (size_t i = 0; i < f->lines.n; i++) {
		const struct feed_line *m = &f->lines.v[i];

		if (!m->model || m->function != l->function)
			continue;
		for (size_t k = 0; k < m->n_names; k++)
			if (mentions(l->right, &m->names[k]) &&
			    (m->p->line < l->p->line || !is_made_before(f, l, &m->names[k])))
				return true;
	}
	return false;
}

/* "obs, reward, done = env.step(move)": what comes next depends on what was answered, nobody can do it ahead. */
static bool plays(const char *text)
{
	return strstr(text, ".step(") || strstr(text, ".reset(") || strstr(text, ".act(");
}

/* Names of a number, not of data: lr = schedule(step) */
static bool is_scalar(const struct word *w)
{
	static const char *const names[] = {
		"lr",   "rate", "step", "epoch", "t",     "seed",
		"beta", "eps",  "i",    "k",     "alpha", "temperature"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == w->n && memcmp(names[i], w->text, w->n) == 0)
			return true;
	return false;
}

static bool makes_data(const struct feed_line *l)
{
	for (size_t i = 0; i < l->n_names; i++)
		if (!is_scalar(&l->names[i]))
			return true;
	return false;
}

/* What is done once, before the training, is over long before that: no line that feeds it. */
static bool goes_on(const struct feed *f, const struct feed_line *l)
{
	return l->last_ns >= f->model_first_ns + (f->model_last_ns - f->model_first_ns) / 2;
}

static bool may_feed(const struct feed *f, const struct feed_line *l)
{
	return !l->model && makes_data(l) && l->framework <= framework_most * l->nameless &&
	       goes_on(f, l) && !line_has_tensors(l->p->source) && !plays(l->right) &&
	       !of_the_model(f, l);
}

/* What the line at `user` is made of, as far as that is not known yet, is to be looked at next. */
static void add_makers(struct feed *f, size_t user)
{
	const struct feed_line *m = &f->lines.v[user];

	for (size_t i = 0; i < f->lines.n; i++) {
		struct feed_line *l = &f->lines.v[i];

		if (l->may && !l->feeds && m->function == l->function && m->p->line > l->p->line &&
		    uses(m, l)) {
			l->feeds = true;
			f->next[f->n_next++] = (uint16_t)i;
		}
	}
}

/* From the model backwards: what feeds it, what feeds that, until there is nothing more. Each line is looked at once. */
static void follow(struct feed *f)
{
	for (size_t i = 0; i < f->lines.n; i++)
		f->lines.v[i].model = f->lines.v[i].framework >= model_least * f->framework &&
				      f->lines.v[i].framework > 0;
	for (size_t i = 0; i < f->lines.n; i++)
		f->lines.v[i].may = may_feed(f, &f->lines.v[i]);
	for (size_t i = 0; i < f->lines.n; i++)
		if (f->lines.v[i].model)
			add_makers(f, i);
	for (size_t i = 0; i < f->n_next; i++)
		add_makers(f, f->next[i]);
}

/* The last part of "Reader.next_chunk". */
static const char *plain_name(const char *function)
{
	const char *dot = strrchr(function, '.');

	return dot ? dot + 1 : function;
}

/* "ls, m = update(next_chunk(k))": is the one called for an argument of the other? */
static bool is_argument(const char *text, const char *function)
{
	const char *name = plain_name(function);
	size_t n = strlen(name);
	int open = 0;

	for (const char *p = text; *p; p++) {
		open += *p == '(';
		open -= *p == ')';
		if (n && p > text && open > 0 && strncmp(p, name, n) == 0 && p[n] == '(' &&
		    !is_name(p[-1]))
			return true;
	}
	return false;
}

/* "net.fit(encode(x), y)" trains with what something makes for an argument: whatever that is called there
 * (`encode = encode_planes`), this function makes it, unless it is the one that trains. */
static bool is_nameless_argument(const char *text, const char *function)
{
	const char *name = plain_name(function), *open = strchr(text, '(');
	const char *in = open ? strchr(open + 1, '(') : NULL;
	struct span s = { text, strlen(text) };

	return in && is_name(in[-1]) && name[0] != '_' && name[0] != '<' &&
	       text_calls_training(s) && !line_names(text, name, strlen(name));
}

/* Of all lines of a function: does it have next to nothing of the framework? */
static bool prepares(const struct feed *f, uint64_t function)
{
	double framework = 0, nameless = 0;

	for (size_t i = 0; i < f->lines.n; i++) {
		const struct feed_line *l = &f->lines.v[i];

		if (l->function != function)
			continue;
		framework += l->framework;
		nameless += l->nameless;
		if (line_has_tensors(l->p->source) || plays(l->right))
			return false;
	}
	return nameless > 0 && framework <= 0.1 * framework_most * nameless;
}

/* Does it use what another line of the same function, before it, had from the model? */
static bool uses_answers(const struct feed *f, const struct feed_line *l)
{
	for (size_t i = 0; i < f->lines.n; i++) {
		const struct feed_line *m = &f->lines.v[i];

		if (m != l && m->model && m->function == l->function && m->p->line <= l->p->line &&
		    uses(l, m))
			return true;
	}
	return false;
}

/* A model's line that has its argument made in place. */
static bool is_made_inside(const struct feed *f, const struct feed_line *l,
			   const struct place *made, bool directly)
{
	return made && l->model &&
	       (is_argument(l->p->source, made->function) ||
		(directly && is_nameless_argument(l->p->source, made->function))) &&
	       !uses_answers(f, l) && prepares(f, place_code(made)) && goes_on(f, l);
}

/* Innermost first: nothing of the program's own up to the line that feeds is a model. */
static bool is_fed_by(const struct activity *a, const struct act_row *r, const struct feed *f)
{
	uint32_t places[STACK_DEPTH_MAX], at;
	size_t n = stack_book_walk(a->book, r->node, places, STACK_DEPTH_MAX);
	const struct place *inner = NULL;
	size_t inner_at = 0;

	for (size_t i = 0; i < n; i++) {
		const struct place *p = stack_book_find_place(a->book, places[i]);

		if (!loop_place_is_own(p))
			continue;
		if (line_has_tensors(p->source))
			return false;
		if (map_get(&f->by_place, places[i], &at) &&
		    (f->lines.v[at - 1].feeds ||
		     is_made_inside(f, &f->lines.v[at - 1], inner, inner_at + 1 == i)))
			return true;
		inner = p;
		inner_at = i;
	}
	return false;
}

static bool somebody_loads(const struct activity *a)
{
	for (size_t i = 0; i < a->threads.n; i++)
		if (a->threads.v[i].role == ROLE_LOADER_WORKER)
			return true;
	return false;
}

void rows_that_feed(struct activity *a, const struct act_thread *t, const struct loop_sense *sense)
{
	struct feed f = { 0 };
	/* without memory they stay what they were */
	bool ok = !somebody_loads(a) && note_lines(a, t, sense, &f);

	if (ok)
		follow(&f);
	for (size_t k = t->row; ok && k < t->row + t->n_rows; k++) {
		struct act_row *r = &a->rows.v[k];

		if (!row_is_nameless(r) || row_is_framework(a, sense, r) || !is_fed_by(a, r, &f))
			continue;
		r->state = TIME_DATA_LOAD;
		r->phase = PHASE_LOAD;
		/* by where it is called from, and not by a name: that is no sure sign */
		r->matched = true;
	}
	vec_done(&f.lines);
	map_done(&f.by_place);
}

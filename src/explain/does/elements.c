/* SPDX-License-Identifier: MIT */
#include "explain/does/elements.h"

#include "explain/keeps/words.h"

#include <string.h>

enum { NAMES_MAX = 4, INDEX_MAX = 24 };

/* Of the names behind `for`: those that count, and those that are elements themselves. */
struct loop {
	const struct py_source *s;
	struct span index[NAMES_MAX], value[NAMES_MAX];
	size_t n_index, n_value;
	bool steps;    /* `while at < len(signal):`, and the name goes on in it */
	bool doubtful; /* what it goes over may be anything: `for mass, height in spectra[i]:` */
};

/* What of a loop's statements was seen. */
struct seen {
	size_t assigned, of_elements;
	bool written; /* an element, or a sum of them */
	bool asked; /* whether an element is above or below something: of an array nobody can say */
	bool called; /* anything is called for each, but what appends */
	bool large;  /* a step of it is no single element's */
	bool scalar; /* an element is made a number: int(), float() and math take no arrays */
	bool others; /* anything is called but that, abs(), min(), max() and the like */
};

static void add_name(struct loop *l, struct span name, bool counts)
{
	if (name.n == 1 && name.p[0] == '_')
		return;
	if (counts && l->n_index < NAMES_MAX)
		l->index[l->n_index++] = name;
	else if (!counts && l->n_value < NAMES_MAX)
		l->value[l->n_value++] = name;
}

/* `spectra[i]`, `self.peaks`: nothing is called, and nothing cut. */
static bool is_plain(struct span s)
{
	if (s.n && s.p[s.n - 1] == ':')
		s.n--;
	return s.n && !memchr(s.p, '(', s.n) && !memchr(s.p, ':', s.n);
}

/* `while at < len(signal) - 1:` */
static bool read_while(struct span s, struct loop *ret)
{
	size_t from = strlen("while "), n = 0;

	while (from + n < s.n && py_is_word(s.p[from + n]))
		n++;
	if (!n || from + n + 1 >= s.n || !span_begins(s, "while ") || s.p[from + n] != ' ' ||
	    !memchr("<>", s.p[from + n + 1], 2))
		return false;
	add_name(ret, (struct span){ s.p + from, n }, true);
	ret->steps = ret->doubtful = true;
	return ret->n_index > 0;
}

/* `for i, (a, b) in enumerate(zip(x, y)):` */
static bool read_head(struct span s, struct loop *ret)
{
	const char *in = s.n ? memmem(s.p, s.n, " in ", 4) : NULL;
	struct span names, over;
	bool counts, numbers;

	if (span_begins(s, "while "))
		return read_while(s, ret);
	/* "for in x:" has no names */
	if (!span_begins(s, "for ") || !in || in < s.p + 4)
		return false;
	names = (struct span){ s.p + 4, (size_t)(in - s.p - 4) };
	over = span_trim((struct span){ in + 4, s.n - (size_t)(in + 4 - s.p) });
	counts = span_begins(over, "range(") || span_begins(over, "reversed(range(") ||
		 span_has(over, "ndindex(") || span_begins(over, "product(range(") ||
		 span_begins(over, "itertools.product(range(");
	numbers = span_begins(over, "enumerate(");
	ret->doubtful =
	    !counts && !numbers && !span_begins(over, "zip(") && !span_has(over, ".tolist()");
	if (ret->doubtful && !is_plain(over))
		return false;
	for (size_t i = 0; i < names.n;) {
		size_t n = 0;

		while (i + n < names.n && py_is_word(names.p[i + n]))
			n++;
		if (n) {
			add_name(ret, (struct span){ names.p + i, n }, counts || numbers);
			numbers = false; /* only the first of them is a number */
		}
		i += n ? n : 1;
	}
	return ret->n_index + ret->n_value > 0;
}

static bool has_name(const struct span *names, size_t n, struct span s)
{
	for (size_t i = 0; i < n; i++)
		if (s.n && span_find_name(s, names[i]))
			return true;
	return false;
}

/* "x[i]", "x[i + 1][j]", "x[0, j]". A slice ("x[i:i + 32]") is more than an element. */
static bool has_element(const struct loop *l, struct span s, struct seen *ret)
{
	bool found = false;

	for (size_t i = 1; i < s.n; i++) {
		struct span inside, piece;

		if (s.p[i] != '[' || (!py_is_word(s.p[i - 1]) && s.p[i - 1] != ']'))
			continue;
		inside = span_inside(s, s.p + i);
		/* brackets in brackets are looked at again and again */
		if (!py_look(l->s, 3 * inside.n + 1)) {
			ret->large = true;
			return false;
		}
		/* a slice; or "heads[i](x)", which is called */
		if (memchr(inside.p, ':', inside.n) ||
		    (inside.p + inside.n + 1 < s.p + s.n && inside.p[inside.n + 1] == '(')) {
			ret->large = true;
			return false;
		}
		while (span_next(&inside, &piece))
			found |= piece.n <= INDEX_MAX && has_name(l->index, l->n_index, piece);
	}
	return found;
}

/* `target = value`, `target -= value`: where the = is that assigns; s.n: none. */
static size_t assigns_at(struct span s)
{
	int depth = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		depth += c == '(' || c == '[' || c == '{';
		depth -= c == ')' || c == ']' || c == '}';
		if (c != '=' || depth || i == 0)
			continue;
		if (i + 1 < s.n && s.p[i + 1] == '=')
			i++; /* both of == */
		else if (!memchr("!<>", s.p[i - 1], 3))
			return i;
	}
	return s.n;
}

/* `f(x)`, `a.b(x)`, and not `and (x)`. */
static bool has_call(struct span s)
{
	for (size_t i = 1; i < s.n; i++)
		if (s.p[i] == '(' && py_is_word(s.p[i - 1]))
			return true;
	return false;
}

/* The dotted name that is called by the bracket at `at`. */
static struct span called_at(struct span s, size_t at)
{
	size_t from = at;

	while (from && (py_is_word(s.p[from - 1]) || s.p[from - 1] == '.'))
		from--;
	return (struct span){ s.p + from, at - from };
}

/* `k = int((mass - low) / width)`: an element is a number. And is anything else called? */
static void read_calls(const struct loop *l, struct span s, struct seen *ret)
{
	static const char *const numbers[] = { "int", "float", "round", "ord" };
	static const char *const small[] = { "abs", "min", "max", "len", "bool", "chr" };

	for (size_t i = 1; i < s.n && !ret->others; i++) {
		struct span name, inside;
		bool number, known = false;

		if (s.p[i] != '(' || !py_is_word(s.p[i - 1]))
			continue;
		name = called_at(s, i);
		number = span_begins(name, "math.");
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			number |= span_is(name, numbers[k]);
		for (size_t k = 0; k < sizeof(small) / sizeof(small[0]); k++)
			known |= span_is(name, small[k]);
		known |= span_is(name, "if") || span_is(name, "and") || span_is(name, "or") ||
			 span_is(name, "not") || span_is(name, "in") ||
			 (name.n > 7 && memcmp(name.p + name.n - 7, ".append", 7) == 0);
		ret->others |= !number && !known;
		if (!number)
			continue;
		if (!py_look(l->s, s.n - i))
			return;
		inside = span_inside(s, s.p + i);
		ret->scalar |= has_name(l->value, l->n_value, inside) && !has_call(inside) &&
			       !memchr(inside.p, '.', inside.n);
	}
}

/* `if lead[i] > level and lead[i] >= lead[i - 1]:` */
static void read_question(const struct loop *l, struct span s, struct seen *ret)
{
	bool compares = s.n && (memchr(s.p, '<', s.n) || memchr(s.p, '>', s.n));

	if (!span_begins(s, "if ") && !span_begins(s, "elif ") && !span_begins(s, "while "))
		return;
	ret->called |= has_call(s);
	if (compares && (has_element(l, s, ret) || has_name(l->value, l->n_value, s))) {
		ret->asked = true;
		ret->assigned++;
		ret->of_elements++;
	}
}

/* `mixed.append(images[k] * gains[k])`; what is called for each may be anything. `found.append(k)`: which ones they are. */
static void read_append(const struct loop *l, struct span s, struct seen *ret)
{
	const char *at = s.n ? memmem(s.p, s.n, ".append(", 8) : NULL;
	struct span inside;
	bool element;

	if (!at) {
		ret->called |= has_call(s);
		return;
	}
	inside = span_inside(s, at + 7);
	element = has_element(l, inside, ret) && !has_call(inside);
	ret->called |= has_call(inside);
	ret->assigned++;
	ret->of_elements +=
	    element || (span_is_name(span_trim(inside)) && has_name(l->index, l->n_index, inside));
	ret->written |= element;
}

/* `at`, `at +` of `at += step` */
static bool is_index(const struct loop *l, struct span target)
{
	while (target.n && memchr(" +-*/", target.p[target.n - 1], 5))
		target.n--;
	for (size_t i = 0; i < l->n_index; i++)
		if (target.n == l->index[i].n && target.n &&
		    memcmp(target.p, l->index[i].p, target.n) == 0)
			return true;
	return false;
}

/* Does the name of a `while` go on in it? And names that are whole numbers of it: `k = int(at)`. */
static bool read_steps(struct loop *l, uint32_t block)
{
	const struct py_source *s = l->s;
	bool goes_on = false;

	for (size_t i = s->blocks.v[block].head + 1; i < s->statements.n; i++) {
		const struct py_statement *t = &s->statements.v[i];
		struct span u = span_of(t), targets, value;

		if (t->line > s->blocks.v[block].to || !py_look(s, 2 * t->n))
			break;
		if (!py_within(s, t->block, block))
			continue;
		goes_on |= is_index(l, (struct span){ u.p, assigns_at(u) }) &&
			   assigns_at(u) < u.n && memchr("+-", u.p[assigns_at(u) - 1], 2);
		if (span_assignment(u, &targets, &value) && span_begins(value, "int(") &&
		    has_name(l->index, l->n_index, value) && span_is_name(span_trim(targets)) &&
		    !has_call((struct span){ value.p + 4, value.n - 4 }))
			add_name(l, span_trim(targets), true);
	}
	return goes_on;
}

static void read_statement(const struct loop *l, struct span s, struct seen *ret)
{
	size_t at = assigns_at(s);
	struct span target, value;
	bool to_element, of_element;

	if (l->doubtful)
		read_calls(l, s, ret);
	read_question(l, s, ret);
	if (span_begins(s, "for "))
		return;
	if (at >= s.n) {
		read_append(l, s, ret);
		return;
	}
	target = (struct span){ s.p, at };
	value = (struct span){ s.p + at + 1, s.n - at - 1 };
	if (l->steps && is_index(l, target))
		return;
	to_element = has_element(l, target, ret);
	of_element = has_element(l, value, ret) || has_name(l->value, l->n_value, value) ||
		     (l->steps && has_name(l->index, l->n_index, value));
	ret->called |= has_call(value);
	ret->assigned++;
	ret->of_elements += to_element || of_element;
	ret->written |= to_element || (of_element && memchr("+-*/", target.p[target.n - 1], 4));
}

/* Steps of this are large, or for something else: of an optimiser each is a whole matrix. */
static bool is_large(struct span s)
{
	return span_has_any(s, " @ |.dot(|matmul(|einsum(|.backward(|zero_grad(|.step(|yield|open(|"
			       "cv2.|resize(|transform|augment|decode(|Image.|imread(|np.load(|."
			       "read(|.write(|print(|.put(|torch.save(|"
			       "model(|net(|loader|batch|param|weight|layer|grad|momentum|beta");
}

bool elements_loop(const struct py_source *s, uint32_t block)
{
	struct loop l = { .s = s };
	struct seen x = { 0 };
	uint32_t def = py_def_of(s, block);

	if (s->blocks.v[block].kind != PY_LOOP ||
	    !read_head(span_of(&s->statements.v[s->blocks.v[block].head]), &l))
		return false;
	if (is_large(span_of(&s->statements.v[s->blocks.v[block].head])) ||
	    (l.steps && !read_steps(&l, block)))
		return false;
	for (size_t i = s->blocks.v[block].head + 1; i < s->statements.n; i++) {
		const struct py_statement *t = &s->statements.v[i];

		if (t->line > s->blocks.v[block].to)
			break;
		/* some twenty pieces are looked for */
		if (!py_look(s, 4 * t->n))
			return false;
		if (!py_within(s, t->block, block) || py_def_of(s, t->block) != def)
			continue;
		read_statement(&l, span_of(t), &x);
		if (x.large || is_large(span_of(t)))
			return false;
	}
	/* `history[epoch] = ...` at the end of a long body is no such loop; and by `if sizes[k] < 9: continue` larger things
	 * are picked, too */
	if (l.doubtful && ((!x.scalar && !l.steps) || x.others))
		return false;
	return (x.written || (x.asked && !x.called)) && 2 * x.of_elements > x.assigned;
}

/* SPDX-License-Identifier: MIT */
#include "explain/keeps/value.h"

enum { PARTS_MAX = 16, SKELETON_MAX = 256 };

static const char small_words[] =
    ".item(|float(|int(|len(|str(|bool(|round(|perf_counter(|monotonic(|time.time(|"
    "getpid(|.lr|.get_last_lr(|.argmax(|accuracy";
static const char array_words[] =
    ".detach(|.clone(|.cpu(|.numpy(|.copy(|np.|numpy.|torch.|jnp.|zeros(|ones(|randn(|"
    "rand(|empty(|bytes(|bytearray(|.read(|load(|imread(|open(|array(|tensor(|stack(|"
    "deepcopy(|state_dict(|alloc(|decode(|parameters(";
/* What people call what a model makes: those names have a graph behind them. */
static const char graph_names[] =
    "loss|out|logit|pred|feat|hidden|embed|score|activation|latent|attn|state";

static bool is_literal(struct span v)
{
	return !v.n || isdigit((unsigned char)*v.p) || *v.p == '-' || span_is(v, "None") ||
	       span_is(v, "True") || span_is(v, "False");
}

/* What is outside of its brackets: of "np.ones(int(x))" that is "np.ones()", of "float(a.mean())" it is "float()". */
static struct span skeleton(struct span v, char *text, size_t size)
{
	size_t n = 0;
	int depth = 0;

	for (size_t i = 0; i < v.n && n < size; i++) {
		bool close = strchr(")]}", v.p[i]) != NULL, open = strchr("([{", v.p[i]) != NULL;

		depth -= close && depth > 0;
		if (!depth)
			text[n++] = v.p[i];
		depth += open;
	}
	return (struct span){ text, n };
}

static bool is_text(struct span v)
{
	size_t i = 0;

	while (i < v.n && i < 2 && strchr("fbruFBRU", v.p[i]))
		i++;
	/* "x" * 100 is more than what is written */
	return i < v.n && (v.p[i] == '"' || v.p[i] == '\'') && v.p[v.n - 1] == v.p[i];
}

/* A name: what it stands for, where that is assigned in the same turn. */
static enum weight weigh_name(const struct py_source *s, const struct py_statement *use,
			      struct span name, bool torch)
{
	char text[SKELETON_MAX];
	struct span made, outside;

	if (memchr(name.p, '.', name.n) || !birth_in_turn(s, use, name, &made))
		return WEIGHT_PLAIN;
	if (!made.n)
		return WEIGHT_MADE; /* what the loop goes over */
	outside = skeleton(made, text, sizeof(text));
	if (span_has_any(outside, small_words) || is_literal(made))
		return WEIGHT_SMALL;
	if (is_text(made))
		return WEIGHT_TEXT;
	if (torch && span_has_any(name, graph_names) &&
	    !span_has_any(made, ".detach(|no_grad|.data"))
		return WEIGHT_GRAPH;
	if (span_has_any(outside, array_words))
		return WEIGHT_ARRAY;
	return span_has_any(made, "(|[|@") ? WEIGHT_MADE : WEIGHT_PLAIN;
}

static enum weight weigh(const struct py_source *s, const struct py_statement *use, struct span v,
			 bool torch)
{
	char text[SKELETON_MAX];
	struct span outside = skeleton(v, text, sizeof(text));

	if (is_text(v))
		return WEIGHT_TEXT;
	if (is_literal(v) || span_has_any(outside, small_words))
		return WEIGHT_SMALL;
	if (span_is_name(v))
		return weigh_name(s, use, v, torch);
	if (span_has_any(outside, array_words))
		return WEIGHT_ARRAY;
	return span_has_any(v, "(|[") ? WEIGHT_MADE : WEIGHT_PLAIN;
}

enum weight value_weight(const struct py_source *s, const struct py_statement *use,
			 struct span list, bool torch)
{
	enum weight most = WEIGHT_SMALL;
	struct span part;

	/* "(loss, images)", "[out]", "{...}": what is inside counts */
	for (int i = 0; i < 3 && list.n > 1 && strchr("([{", *list.p); i++) {
		struct span inside = span_inside(list, list.p);

		if (inside.p + inside.n + 1 < list.p + list.n - 1)
			break;
		list = inside;
	}
	for (int i = 0; i < PARTS_MAX && span_next(&list, &part); i++) {
		const char *colon = part.n && *part.p != '{' ? memchr(part.p, ':', part.n) : NULL;
		enum weight w;

		/* "key: value", "name=value" */
		if (colon && !memchr(part.p, '[', (size_t)(colon - part.p)))
			part = span_trim(
			    (struct span){ colon + 1, (size_t)(part.p + part.n - colon - 1) });
		w = weigh(s, use, part, torch);
		most = w > most ? w : most;
	}
	return most;
}

/* SPDX-License-Identifier: MIT */
#include "explain/does/held.h"

static bool one_of(const char *p, size_t n, const char *list)
{
	while (*list) {
		size_t len = strcspn(list, "|");

		if (len == n && memcmp(list, p, n) == 0)
			return true;
		list += len + (list[len] == '|');
	}
	return false;
}

/* "valloader", "testset" */
static bool is_compound(const char *p, size_t n)
{
	static const char *const kinds[] = { "validation", "valid", "val",    "test",
					     "dev",        "eval",  "holdout" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i]);

		if (n > len && memcmp(p, kinds[i], len) == 0)
			return one_of(
			    p + len, n - len,
			    "loader|set|data|batches|iter|dl|ds|dataset|dataloader|gen|x|y");
	}
	return false;
}

/* The word of letters at [from, to) of a text. Alone "val" is a value, "dev" a device and "test" anything: they count as a
 * part of a longer name, unless that is the name of a number. */
static bool is_held_out(const char *text, size_t n, size_t from, size_t to)
{
	const char *p = text + from, *rest = text + to;
	size_t len = to - from, more = 0;

	if (is_compound(p, len) || one_of(p, len, "holdout|heldout|Xte|Xval|Xtest|yval|ytest"))
		return true;
	if (!one_of(p, len, "val|valid|validation|test|dev|eval|evaluation|held|te|va"))
		return false;
	if (from && text[from - 1] == '_')
		return true;
	while (to + more < n && py_is_word(rest[more]))
		more++;
	return more > 1 && *rest == '_' &&
	       !one_of(rest + 1, more - 1,
		       "every|interval|size|freq|frequency|time|steps|epochs|split|fraction|ratio|"
		       "ices|ice|mode|name|path|dir|str|int|float");
}

bool text_names_held_out(const char *text, size_t n)
{
	for (size_t i = 0, from; i < n; i += i == from) {
		from = i;
		while (i < n && isalpha((unsigned char)text[i]))
			i++;
		if (i > from && is_held_out(text, n, from, i))
			return true;
	}
	return false;
}

bool text_calls_training(struct span s)
{
	static const char *const names[] = { "train", "fit", "training", "learn", "epoch" };

	for (const char *p = s.p; s.n && p < s.p + s.n; p++) {
		const char *open;

		if (p > s.p && py_is_word(p[-1]))
			continue;
		open = p;
		while (open < s.p + s.n && py_is_word(*open))
			open++;
		if (open == p || open == s.p + s.n || *open != '(')
			continue;
		/* model.train() */
		if (open - p == 5 && p > s.p && p[-1] == '.' && open + 1 < s.p + s.n &&
		    memcmp(p, "train", 5) == 0 &&
		    (open[1] == ')' || open[1] == 'F' || open[1] == 'T'))
			continue;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			const char *hit = memmem(p, (size_t)(open - p), names[i], strlen(names[i]));

			if (hit && (hit == p || hit[-1] == '_') &&
			    (hit + strlen(names[i]) == open || hit[strlen(names[i])] == '_'))
				return true;
		}
	}
	return false;
}

/* The line without what its strings say and without a comment, as long as ret is. */
static struct span without_strings(const char *line, char *ret, size_t size)
{
	size_t n = 0;
	char quote = 0;

	for (; *line && n < size; line++) {
		if (!quote && *line == '#')
			break;
		if (quote && *line == '\\' && line[1]) {
			line++;
			continue;
		}
		if (quote && *line != quote)
			continue;
		quote = quote ? 0 : *line == '"' || *line == '\'' ? *line : 0;
		ret[n++] = *line;
	}
	return (struct span){ ret, n };
}

bool line_asks_held_out(const char *line)
{
	char buf[256];
	struct span s = without_strings(line, buf, sizeof(buf));
	const char *open = s.n ? memchr(s.p, '(', s.n) : NULL;

	if (!open || open == s.p || !py_is_word(open[-1]) || span_begins(s, "def ") ||
	    span_begins(s, "class ") || span_has_any(s, "split(|Loader(|Dataset(|.to(|len(|range("))
		return false;
	return text_names_held_out(open, s.n - (size_t)(open - s.p)) && !text_calls_training(s);
}

bool line_learns(const char *line)
{
	char buf[256];

	return span_has_any(without_strings(line, buf, sizeof(buf)),
			    ".backward(|optimizer.step(|optim.step(|opt.step(|optimiser.step(|"
			    "scaler.step(|trainer.step(|apply_gradients(|- lr * |- lr*|- self.lr *|"
			    "- learning_rate *|- self.learning_rate *|-= lr *|-= self.lr *|- eta *|"
			    "- step_size *|- args.lr *|- cfg.lr *|- LR *");
}

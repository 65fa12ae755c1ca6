/* SPDX-License-Identifier: MIT */
#include "explain/ledger/arithmetic.h"

#include <ctype.h>
#include <string.h>

/* A name that is no part of a longer one, or of an attribute: "F." is not in "self.F." nor in "PDF.". */
static bool has_piece(const char *text, const char *piece)
{
	bool word = isalpha((unsigned char)piece[0]);

	for (const char *at = text; (at = strstr(at, piece)); at++)
		if (!word || at == text ||
		    !(isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.'))
			return true;
	return false;
}

static bool has_any(const char *text, const char *const *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (has_piece(text, pieces[i]))
			return true;
	return false;
}

bool line_has_arrays(const char *text)
{
	static const char *const pieces[] = {
		" @ ",        ".T",           ".dot(",       "np.exp(",     "np.dot(",
		"np.sum(",    "np.mean(",     "np.maximum(", "np.minimum(", "np.tanh(",
		"np.sqrt(",   "np.log(",      "np.einsum(",  "np.matmul(",  "np.outer(",
		"np.add.at(", "np.bincount(", "np.argmax(",  "np.argmin(",  "np.linalg.",
		"np.abs(",    "np.where(",    "np.clip(",    "np.square(",  "np.sign(",
		"scipy.",     "linalg.",      ".sum(",       ".mean(",      ".max(",
		".argmax(",   ".argmin(",     ".std(",       "np.random.",  "rng.normal(",
	};

	return has_any(text, pieces, sizeof(pieces) / sizeof(pieces[0])) || line_has_tensors(text);
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Where "-= " or "+= " is, outside of strings and comments; NULL: nowhere. */
static const char *update_at(const char *text)
{
	char quote = 0;

	for (const char *p = text; *p; p++) {
		if (quote) {
			quote = *p == quote ? 0 : quote;
			continue;
		}
		if (*p == '#')
			return NULL;
		if (*p == '\'' || *p == '"')
			quote = *p;
		else if ((*p == '-' || *p == '+') && p[1] == '=' && p[2] == ' ')
			return p;
	}
	return NULL;
}

/* Back over "[...]" that ends before `end`. */
static const char *before_brackets(const char *text, const char *end)
{
	int open = 0;

	if (end == text || end[-1] != ']')
		return end;
	while (end > text) {
		end--;
		open += *end == ']';
		open -= *end == '[';
		if (open == 0)
			break;
	}
	return end;
}

/* "np.add.at(q, items, 0.05 * err)": an update by another name. NULL: none. */
static const char *adds_at(const char *text)
{
	static const char *const calls[] = { "np.add.at(", "np.subtract.at(" };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strncmp(text, calls[i], strlen(calls[i])) == 0)
			return text + strlen(calls[i]);
	return NULL;
}

/* "w.index_add_(0, rows, g, alpha=-lr)": the dot of the call that changes a tensor in place; NULL: none. */
static const char *changes_in_place(const char *text)
{
	static const char *const calls[] = { ".index_add_(", ".scatter_add_(", ".add_(",
					     ".sub_(",       ".addmm_(",       ".addr_(",
					     ".addcdiv_(",   ".addcmul_(",     ".baddbmm_(" };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const char *at = strstr(text, calls[i]);

		if (at && !memchr(text, '#', (size_t)(at - text)))
			return at;
	}
	return NULL;
}

const char *line_updated(const char *text, size_t *ret_n)
{
	const char *end = update_at(text), *start = adds_at(text);

	*ret_n = 0;
	if (start) {
		while (is_name(start[*ret_n]))
			++*ret_n;
		return start;
	}
	end = end ? end : changes_in_place(text);
	if (!end)
		return text;
	while (end > text && end[-1] == ' ')
		end--;
	end = before_brackets(text, end);
	for (start = end; start > text && is_name(start[-1]); start--)
		;
	*ret_n = (size_t)(end - start);
	return start;
}

bool line_names(const char *text, const char *name, size_t n)
{
	size_t len = strlen(text);

	for (const char *at = text; n && (at = memmem(at, len - (size_t)(at - text), name, n));
	     at++)
		if ((at == text || !is_name(at[-1])) && !is_name(at[n]))
			return true;
	return false;
}

/* "0.5 * w[k]", but not "1 * 3": what is multiplied has brackets or is no number. */
static bool multiplies(const char *text)
{
	const char *at = strchr(text, '*');

	return at && (isalpha((unsigned char)at[1 + strspn(at + 1, " *")]) || strchr(text, '['));
}

bool line_updates_arrays(const char *text)
{
	const char *at = update_at(text);

	if (adds_at(text) || (changes_in_place(text) && line_teaches_surely(text)))
		return true;
	/* "count += 1" is what any program has */
	return at && (line_teaches(text) || line_has_arrays(at) ||
		      (memchr(text, '[', (size_t)(at - text)) && multiplies(at)));
}

/* "lr * g", "0.01 * np.dot(x, d)", "self.lr * 50 * g", "1e-3 * g": what a rate is multiplied with; NULL: no rate. */
static const char *behind_rate(const char *right)
{
	size_t n = 0;

	right += strspn(right, " (-");
	while (is_name(right[n]) || right[n] == '.' ||
	       (n && right[n] == '-' && isdigit((unsigned char)right[0]) &&
		(right[n - 1] == 'e' || right[n - 1] == 'E')))
		n++;
	if (!n)
		return NULL;
	right += n + strspn(right + n, " ");
	return right[0] == '*' && right[1] != '*' ? right + 1 + strspn(right + 1, " (") : NULL;
}

/* "grad", "self.grad_w", "grads[i]", "gradient": by its name a gradient: 1; and "g", "g1", "gw", which may be gravity, green or
 * anything: 2. 0: no. */
static int names_gradient(const char *text)
{
	static const char *const brief[] = { "g", "gw", "gb", "gW", "gB" };
	const char *name = text;
	size_t n = 0;

	for (; is_name(text[n]) || text[n] == '.'; n++)
		name = text[n] == '.' ? text + n + 1 : name;
	n -= (size_t)(name - text);
	if (n >= 4 && strncmp(name, "grad", 4) == 0 &&
	    (n == 4 || name[4] == '_' || name[4] == 's' || isdigit((unsigned char)name[4]) ||
	     strncmp(name + 4, "ient", 4) == 0))
		return 1;
	if (n > 1 && name[0] == 'g' && strspn(name + 1, "0123456789") == n - 1)
		return 2;
	for (size_t i = 0; i < sizeof(brief) / sizeof(brief[0]); i++)
		if (n == strlen(brief[i]) && strncmp(name, brief[i], n) == 0)
			return 2;
	return 0;
}

/* "1e-3 * g" */
static bool begins_with_exponent(const char *right)
{
	right += strspn(right, " (-");
	return isdigit((unsigned char)*right) && right[strspn(right, "0123456789.")] == 'e';
}

/* "dt * v": so a simulation goes on. */
static bool begins_with_time(const char *right)
{
	right += strspn(right, " (-");
	right += strncmp(right, "self.", 5) == 0 ? 5 : 0;
	return strncmp(right, "dt", 2) == 0 && !is_name(right[2]);
}

bool line_names_rate(const char *text)
{
	static const char *const rates[] = {
		"lr", "rate", "learning_rate", "eta", "step_size", "LR"
	};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (line_names(text, rates[i], strlen(rates[i])))
			return true;
	return false;
}

/* "W", "w1", "b", "b_out", "weights": a capital T is a temperature. */
static bool is_weight(const char *name, size_t n)
{
	if (!n || !strchr("WwBb", name[0]))
		return false;
	return n == 1 || isdigit((unsigned char)name[1]) || name[1] == '_' ||
	       strncmp(name, "weight", 6) == 0 || strncmp(name, "bias", 4) == 0;
}

bool line_lessens_weight(const char *text)
{
	const char *at = update_at(text), *name;
	size_t n;

	name = line_updated(text, &n);
	/* "w" and "b" may be anything */
	return at && *at == '-' && is_weight(name, n) && (name[0] == 'W' || n >= 4);
}

/* "dW" for "W", "gw" for "self.w", "d_b1" for "b1": named for what it changes. Only of weights and biases: "x -= 0.1 * dx" is what a
 * simulation does. */
static bool is_gradient_of(const char *what, const char *name, size_t n)
{
	static const char *const before[] = { "d", "g", "d_", "g_" };
	size_t len = 0;

	if (!is_weight(name, n))
		return false;

	for (; is_name(what[len]) || what[len] == '.'; len++)
		if (what[len] == '.') {
			what += len + 1;
			len = (size_t)-1;
		}
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		size_t m = strlen(before[i]);

		if (len == m + n && strncmp(what, before[i], m) == 0 &&
		    strncmp(what + m, name, n) == 0)
			return true;
	}
	return false;
}

/* "alpha * (r + gamma * Q[s2].max() - Q[s, a])" */
static bool names_reward(const char *text)
{
	return line_names(text, "alpha", 5) &&
	       (strstr(text, " gamma * ") || strstr(text, ".gamma * "));
}

/* Is the rate or the gradient called one, at the operator of an update? */
static bool is_called_so(const char *text, const char *at)
{
	const char *what = behind_rate(at + 2), *name;
	int gradient = what ? names_gradient(what) : 0;
	size_t n;

	if (line_names_rate(at) || names_reward(at) || gradient == 1 ||
	    (gradient == 2 && begins_with_exponent(at + 2)))
		return true;
	name = line_updated(text, &n);
	return *at == '-' && what && is_gradient_of(what, name, n);
}

/* "lr * ", "self.lr * ": a name that nobody gives to anything else. */
static bool begins_with_rate(const char *text)
{
	static const char *const rates[] = { "lr", "learning_rate", "LR" };
	size_t n = 0, to;

	text += strspn(text, " (-");
	text += strncmp(text, "self.", 5) == 0 ? 5 : 0;
	while (is_name(text[n]))
		n++;
	to = n + strspn(text + n, " ");
	if (text[to] != '*' || text[to + 1] == '*')
		return false;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (n == strlen(rates[i]) && strncmp(text, rates[i], n) == 0)
			return true;
	return false;
}

/* Behind the = that assigns, outside of strings; NULL: none, or what is assigned is a rate itself ("lr = lr0 - lr * decay"). */
static const char *assigned(const char *text)
{
	char quote = 0;

	if (strncmp(text, "lr", 2) == 0 || strncmp(text, "self.lr", 7) == 0)
		return NULL;
	for (const char *p = text; *p && *p != '#'; p++) {
		if (quote) {
			quote = *p == quote ? 0 : quote;
			continue;
		}
		if (*p == '\'' || *p == '"')
			quote = *p;
		else if (*p == '=' && p > text && p[1] == ' ' && !strchr("=!<>+-*/", p[-1]))
			return p + 1;
	}
	return NULL;
}

/* "p.sub_(g, alpha=self.lr)", "w.index_add_(0, rows, g, alpha=-lr)": the rate is a keyword of a call that changes a tensor. */
static bool descends_by_keyword(const char *text)
{
	static const char *const keywords[] = { "alpha=", "value=" };
	const char *call = changes_in_place(text);

	for (size_t i = 0; call && i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		const char *key = strstr(call, keywords[i]);
		char value[64];
		size_t n;

		if (!key || is_name(key[-1]))
			continue;
		key += strlen(keywords[i]);
		n = strcspn(key, ",)#");
		if (n >= sizeof(value))
			continue;
		memcpy(value, key, n);
		value[n] = '\0';
		/* "1 - rate" is an average */
		if (!strstr(value, "1 -") && line_names_rate(value))
			return true;
	}
	return false;
}

/* "w = w - lr * g", "v = mu * v - lr * g", "w = [a - lr * b for a, b in pairs]", "np.add.at(e, ids, -lr * d)" */
static bool descends_by_name(const char *text)
{
	const char *at = adds_at(text);
	bool adds;

	if (descends_by_keyword(text))
		return true;
	if (!at && changes_in_place(text))
		at = strchr(changes_in_place(text), '(');
	adds = at != NULL;
	at = adds ? at : assigned(text);
	for (const char *p = at; p && *p && !strchr("#'\"", *p); p++) {
		const char *what = *p == '-' ? behind_rate(p + 1) : NULL;

		if ((*p == '-' || (adds && *p == ',')) && begins_with_rate(p + 1))
			return true;
		if (what && names_gradient(what) == 1)
			return true;
	}
	return false;
}

bool line_descends(const char *text)
{
	const char *at = update_at(text), *name;
	size_t n;

	if (descends_by_name(text))
		return true;
	if (!at || !behind_rate(at + 2) || begins_with_time(at + 2))
		return false;
	/* up the gradient of a reward */
	if (*at == '+')
		return is_called_so(text, at);
	/* a filter takes a part of itself away: y[1:] -= 0.97 * y[:-1] */
	name = line_updated(text, &n);
	return line_names_rate(at) || !line_names(at + 2, name, n);
}

bool line_teaches(const char *text)
{
	return descends_by_name(text) ||
	       (line_descends(text) && is_called_so(text, update_at(text)));
}

/* "self.w1 -= self.rate * (x.T @ gh)": a weight, a rate, and what of the product of two matrices goes down. */
static bool lessens_by_product(const char *text, const char *at)
{
	size_t n;
	const char *name = line_updated(text, &n);

	/* "b_pos" is a bias or a body */
	return *at == '-' && is_weight(name, n) && (n == 1 || name[1] != '_') &&
	       line_names_rate(at) && (strstr(at, ".T @ ") || strstr(at, ".T.dot("));
}

bool line_teaches_surely(const char *text)
{
	const char *at = update_at(text), *what;

	if (descends_by_name(text))
		return true;
	if (!at || !line_teaches(text))
		return false;
	what = behind_rate(at + 2);
	return begins_with_rate(at + 2) || (what && names_gradient(what) == 1) ||
	       lessens_by_product(text, at);
}

bool line_has_tensors(const char *text)
{
	static const char *const pieces[] = {
		"torch.relu",    "torch.matmul",
		"torch.sigmoid", "torch.tanh",
		"torch.exp",     "torch.nn",
		"torch.conv",    "torch.bmm",
		"torch.mm",      "torch.einsum",
		"torch.soft",    "torch.log",
		"torch.no_grad", "torch.autograd",
		"jnp.",          "jax.",
		"tf.",           "F.",
		"nn.",           "nd.",
		" @ ",           ".mm(",
		".matmul(",      ".softmax(",
		".relu(",        ".backward(",
		".index_add_(",  ".scatter_add_(",
		".addcdiv_(",    ".addcmul_(",
	};

	return has_any(text, pieces, sizeof(pieces) / sizeof(pieces[0]));
}

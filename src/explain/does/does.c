/* SPDX-License-Identifier: MIT */
#include "explain/does/does.h"

#include "base/scan.h"
#include "model/stacks.h"

#include <stdio.h>
#include <string.h>

const char *does_name(enum does_what what)
{
	static const char *const names[DOES_WHATS] = {
		[DOES_EVALUATE] = "evaluate", [DOES_SAVE] = "save",
		[DOES_LOG] = "log",           [DOES_LOAD] = "load",
		[DOES_TOKENIZE] = "tokenize", [DOES_TRAIN] = "train",
		[DOES_LOADER] = "loader",     [DOES_POOL] = "pool",
		[DOES_STARTS] = "starts",     [DOES_THREADS] = "threads",
		[DOES_DEVICE] = "device",     [DOES_WATCH] = "watch",
		[DOES_ELEMENTS] = "elements", [DOES_AHEAD] = "ahead",
	};

	return what >= 0 && what < DOES_WHATS ? names[what] : "";
}

void does_write(const struct does *d, char *ret, size_t size)
{
	snprintf(ret, size, "%s %d-%d", does_name(d->what), (int)d->from, (int)d->to);
}

bool does_read(const struct place *p, struct does *ret)
{
	struct scan s;
	const char *word;
	uint64_t from, to;
	size_t n;

	if (p->kind != PLACE_DOES || !p->source || !p->file || !p->file[0])
		return false;
	s = scan_of(p->source, strlen(p->source));
	if (!scan_word(&s, &word, &n) || !scan_u64(&s, &from) || !scan_lit(&s, "-") ||
	    !scan_u64(&s, &to) || from < 1 || to < from || to > INT32_MAX)
		return false;
	*ret = (struct does){ .from = (int32_t)from, .to = (int32_t)to };
	for (int i = 0; i < DOES_WHATS; i++)
		if (strlen(does_name((enum does_what)i)) == n &&
		    memcmp(does_name((enum does_what)i), word, n) == 0) {
			ret->what = (enum does_what)i;
			return true;
		}
	return false;
}

/* SPDX-License-Identifier: MIT */
#include "model/name_set.h"

void name_set_done(struct name_set *s)
{
	for (size_t i = 0; i < s->names.n; i++)
		free(s->names.v[i]);
	vec_done(&s->names);
	map_done(&s->by_hash);
}

uint64_t name_hash(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3ull;
	return h;
}

const char *name_set_add(struct name_set *s, const char *name)
{
	uint64_t key = name_hash(name);
	uint32_t at;
	char **slot;

	/* Two names of one hash take keys side by side. */
	for (; map_get(&s->by_hash, key, &at); key++)
		if (strcmp(s->names.v[at], name) == 0)
			return s->names.v[at];
	if (s->names.n >= NAME_SET_MAX)
		return NULL;
	slot = vec_push(&s->names);
	if (!slot)
		return NULL;
	*slot = strdup(name);
	if (!*slot || !map_put(&s->by_hash, key, (uint32_t)(s->names.n - 1))) {
		free(*slot);
		s->names.n--;
		return NULL;
	}
	return *slot;
}

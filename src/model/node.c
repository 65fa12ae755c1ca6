/* SPDX-License-Identifier: MIT */
#include "model/node.h"

#include "base/text.h"

#include <stdio.h>

enum {
	UP_MOST = 8
}; /* a thing hangs on its host by a few others; what is made up may hang on itself */

static const struct entity *host_with(const struct entity_table *t, int64_t key)
{
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].kind == ENTITY_HOST && t->rows.v[i].key == key)
			return &t->rows.v[i];
	return NULL;
}

bool node_several(const struct entity_table *t)
{
	return host_with(t, 1) != NULL;
}

const struct entity *node_host(const struct entity_table *t, const struct entity *e)
{
	for (int up = 0; e && up < UP_MOST; up++) {
		if (e->kind == ENTITY_HOST)
			return e->key > 0 ? e : NULL;
		if (e->kind == ENTITY_PROC || e->kind == ENTITY_THREAD)
			return e->key >= 0 ? host_with(t, e->key / NODE_KEYS + 1) : NULL;
		e = entity_find(t, e->parent);
	}
	return NULL;
}

const char *node_name(const struct entity_table *t, const struct entity *e)
{
	const struct entity *host = node_host(t, e);

	return host && host->name ? host->name : "";
}

const char *node_pid_text(const struct entity_table *t, const struct entity *e, char *buf,
			  size_t size)
{
	const char *node = node_name(t, e);
	char safe[48];

	if (node[0])
		snprintf(buf, size, "%lld on %s", (long long)node_own_key(e->key),
			 text_safe_copy(safe, sizeof(safe), node));
	else
		snprintf(buf, size, "%lld", (long long)e->key);
	return buf;
}

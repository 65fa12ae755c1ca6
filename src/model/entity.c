/* SPDX-License-Identifier: MIT */
#include "model/entity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void entity_table_done(struct entity_table *t)
{
	for (size_t i = 0; i < t->rows.n; i++) {
		free(t->rows.v[i].name);
		free(t->rows.v[i].detail);
	}
	vec_done(&t->rows);
	map_done(&t->by_id);
}

static struct entity *find(const struct entity_table *t, uint32_t id)
{
	uint32_t at;

	return map_get(&t->by_id, id, &at) ? &t->rows.v[at] : NULL;
}

const struct entity *entity_find(const struct entity_table *t, uint32_t id)
{
	return find(t, id);
}

const struct entity *entity_find_pid(const struct entity_table *t, int64_t pid)
{
	for (size_t i = t->rows.n; i-- > 0;)
		if (t->rows.v[i].kind == ENTITY_PROC && t->rows.v[i].key == pid)
			return &t->rows.v[i];
	return NULL;
}

static int set_text(struct entity *e, const char *name, const char *detail)
{
	char *n = strdup(name), *d = strdup(detail);

	if (!n || !d) {
		free(n);
		free(d);
		return -ENOMEM;
	}
	free(e->name);
	free(e->detail);
	e->name = n;
	e->detail = d;
	return 0;
}

int entity_table_add(struct entity_table *t, const struct entity *e)
{
	struct entity *row;

	if (find(t, e->id))
		return 0;
	row = vec_push(&t->rows);
	if (!row)
		return -ENOMEM;
	*row = *e;
	row->name = row->detail = NULL;
	if (set_text(row, e->name, e->detail) < 0 ||
	    !map_put(&t->by_id, e->id, (uint32_t)(t->rows.n - 1))) {
		free(row->name);
		free(row->detail);
		t->rows.n--;
		return -ENOMEM;
	}
	return 0;
}

void entity_table_forget(struct entity_table *t, int64_t before_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->rows.n; i++) {
		struct entity *e = &t->rows.v[i];

		if (e->gone_ns && e->gone_ns < before_ns) {
			map_del(&t->by_id, e->id);
			free(e->name);
			free(e->detail);
			continue;
		}
		/* The key is in the map already, so this put cannot need memory. */
		if (kept != i)
			map_put(&t->by_id, e->id, (uint32_t)kept);
		t->rows.v[kept++] = *e;
	}
	t->rows.n = kept;
}

int entity_table_apply(struct entity_table *t, const struct frame *f, const struct life *life)
{
	struct entity *row = find(t, life->id);
	const char *name = frame_text(f, life->name), *detail = frame_text(f, life->detail);

	switch (life->change) {
	case LIFE_BORN:
		return entity_table_add(t, &(struct entity){ .id = life->id,
							     .parent = life->parent,
							     .kind = life->kind,
							     .key = life->key,
							     .start_ns = life->start_ns,
							     .born_ns = f->mono_ns,
							     .name = (char *)name,
							     .detail = (char *)detail });
	case LIFE_CHANGED:
		if (!row)
			return 0;
		row->parent = life->parent;
		return set_text(row, name, detail);
	case LIFE_GONE:
		if (row)
			row->gone_ns = f->mono_ns;
		return 0;
	}
	return 0;
}

int entity_table_frame(struct entity_table *t, const struct frame *f)
{
	for (size_t i = 0; i < f->lives.n; i++) {
		int r = entity_table_apply(t, f, &f->lives.v[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

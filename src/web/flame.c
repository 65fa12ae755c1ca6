/* SPDX-License-Identifier: MIT */
#include "web/flame.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "explain/verdict.h"
#include "model/name_set.h"
#include "model/stack_sum.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TREE_MOST = 200000, NAME_BYTES = 120 };

/* The whole tree, before it is cut. */
struct twig {
	uint32_t parent;      /* place in twigs; 0: the root */
	uint32_t code;        /* of model/stack_text.h, or of the first level: place in owners */
	uint32_t child, next; /* place of the first child, of the next sibling; 0: none */
	double self, total;
	bool kept;
};

struct grower {
	const struct window *w;
	const struct stack_book *book;
	struct stack_sum sum;     /* by owner */
	VEC(char *) owners;       /* owned, safe to show */
	struct map owner_of;      /* thread -> place in owners */
	struct map owner_by_name; /* hash -> place in owners + 1 */
	VEC(struct twig) twigs;   /* the first is the root */
	struct map by_code;       /* parent << 32 | code -> place in twigs */
	const struct thread_role *roles;
	struct map role_of; /* thread -> place in roles */
	int error;
};

static void grower_done(struct grower *g)
{
	for (size_t i = 0; i < g->owners.n; i++)
		free(g->owners.v[i]);
	vec_done(&g->owners);
	stack_sum_done(&g->sum);
	map_done(&g->role_of);
	map_done(&g->owner_of);
	map_done(&g->owner_by_name);
	vec_done(&g->twigs);
	map_done(&g->by_code);
}

void flame_done(struct flame *f)
{
	for (size_t i = 0; i < f->strings.n; i++)
		free(f->strings.v[i]);
	vec_done(&f->strings);
	vec_done(&f->nodes);
}

/* "main", "loader worker", "child: gzip"; of a thread without a role "python3 (4711), main thread". */
static void name_owner(const struct grower *g, uint32_t thread, struct buf *out)
{
	const struct entity_table *all = window_entities(g->w);
	const char *role = NULL;
	uint32_t at;

	if (map_get(&g->role_of, thread, &at))
		role = g->roles[at].role;
	for (const char *s = role; s && *s; s++)
		buf_char(out, *s == '_' ? ' ' : *s);
	if (!role) {
		stack_process_name(all, thread, out);
		buf_str(out, ", ");
		stack_thread_name(all, thread, out);
	} else if (strcmp(role, "child") == 0 || strcmp(role, "other") == 0) {
		const struct entity *e = entity_find(all, thread);
		const struct entity *p = e ? entity_find(all, e->parent) : NULL;

		if (p && p->name) {
			buf_str(out, ": ");
			text_safe(out, p->name, strlen(p->name));
		}
	}
}

/* Threads of the same name share an owner: four workers are one. */
static int owner_of(struct grower *g, uint32_t thread, uint32_t *ret)
{
	auto_done(buf) struct buf name = { 0 };
	uint32_t at;
	char **slot;

	if (map_get(&g->owner_of, thread, ret))
		return 0;
	name_owner(g, thread, &name);
	if (!buf_ok(&name))
		return -ENOMEM;
	if (map_get(&g->owner_by_name, name_hash(buf_text(&name)), &at)) {
		*ret = at - 1;
		return map_put(&g->owner_of, thread, at - 1) ? 0 : -ENOMEM;
	}
	slot = vec_push(&g->owners);
	if (slot)
		*slot = strdup(buf_text(&name));
	*ret = (uint32_t)(g->owners.n - 1);
	if (!slot || !*slot || !map_put(&g->owner_of, thread, *ret) ||
	    !map_put(&g->owner_by_name, name_hash(*slot), *ret + 1))
		return -ENOMEM;
	return 0;
}

static bool take_slice(const struct stack_slice *s, void *arg)
{
	struct grower *g = arg;

	for (size_t i = 0; i < s->n && !g->error; i++) {
		uint32_t owner;

		/* What waits and has no frames says nothing about the program. */
		if (!s->rows[i].node && s->rows[i].kind != WAIT_RUNNING)
			continue;
		g->error = owner_of(g, s->rows[i].entity, &owner);
		if (!g->error)
			g->error = stack_sum_add(&g->sum, owner, &s->rows[i]);
	}
	return !g->error;
}

/* The child with this code, a new one where there is none. 0: the tree is full. */
static uint32_t child_of(struct grower *g, uint32_t parent, uint32_t code)
{
	uint64_t key = (uint64_t)parent << 32 | code;
	uint32_t at;
	struct twig *t;

	if (map_get(&g->by_code, key, &at))
		return at;
	t = g->twigs.n < TREE_MOST ? vec_push(&g->twigs) : NULL;
	at = (uint32_t)(g->twigs.n - 1);
	if (!t || !map_put(&g->by_code, key, at))
		return 0;
	*t = (struct twig){ .parent = parent, .code = code, .next = g->twigs.v[parent].child };
	g->twigs.v[parent].child = at;
	return at;
}

static void grow_line(struct grower *g, const struct stack_line *line)
{
	uint32_t codes[STACK_CODES_MAX], at = 0;
	size_t n = stack_codes(g->book, &line->look, codes);
	double seconds = (double)line->weight_ns / 1e9;

	g->twigs.v[0].total += seconds;
	for (size_t i = 0; i <= n; i++) {
		/* The first level has codes of its own, and they never meet those of frames. */
		uint32_t next = child_of(g, at, i ? codes[i - 1] : line->owner);

		if (!next)
			break;
		at = next;
		g->twigs.v[at].total += seconds;
	}
	g->twigs.v[at].self += seconds;
}

static int by_total(const void *a, const void *b, void *arg)
{
	const struct twig *v = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	/* Parents were made before their children, and are at least as long. */
	if (v[x].total != v[y].total)
		return v[x].total < v[y].total ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* Of a long path the end tells. */
static void put_path(const char *path, struct buf *out)
{
	size_t n = strlen(path), most = NAME_BYTES - 8;
	const char *s = n > most ? path + n - most : path, *slash = strchr(s, '/');

	if (s != path) {
		buf_str(out, "...");
		s = slash ? slash : s;
	}
	text_safe(out, s, strlen(s));
}

/* Text and file of a frame: "memcpy", "/usr/lib/libc.so.6". */
static void name_frame(const struct grower *g, const struct twig *t, struct buf *function,
		       struct buf *file)
{
	const struct place *p = stack_code_place(g->book, t->code);

	if (!t->parent) {
		buf_str(function, g->owners.v[t->code]);
		return;
	}
	if (!p) {
		stack_code_name(g->book, t->code, function);
		return;
	}
	if (p->file && p->file[0])
		put_path(p->file, file);
	if (p->function && p->function[0])
		text_safe(function, p->function, strlen(p->function));
	else
		stack_code_name(g->book, t->code, function); /* "[libc.so.6]", "[unknown]" */
}

struct pruner {
	struct grower *g;
	struct flame *out;
	struct map by_hash; /* of a string -> place in strings + 1 */
	size_t text, most_text;
	uint32_t *order; /* scratch: children of a twig */
};

static int intern(struct pruner *p, const char *text, uint32_t *ret)
{
	char cut[NAME_BYTES];
	uint64_t h;
	uint32_t at;
	char **slot;

	text_safe_copy(cut, sizeof(cut), text);
	h = name_hash(cut);
	if (map_get(&p->by_hash, h, &at) && strcmp(p->out->strings.v[at - 1], cut) == 0) {
		*ret = at - 1;
		return 0;
	}
	slot = vec_push(&p->out->strings);
	if (slot)
		*slot = strdup(cut);
	if (!slot || !*slot || !map_put(&p->by_hash, h, (uint32_t)p->out->strings.n))
		return -ENOMEM;
	p->text += strlen(cut) + 3;
	*ret = (uint32_t)(p->out->strings.n - 1);
	return 0;
}

static int put_node(struct pruner *p, int32_t parent, const char *function, const char *file,
		    int32_t line, double self, double total)
{
	struct flame_node *n = vec_push(&p->out->nodes);
	uint32_t f = 0, g = 0;
	int r = n ? intern(p, function, &f) : -ENOMEM;

	if (r == 0)
		r = intern(p, file, &g);
	if (r == 0)
		*n = (struct flame_node){ parent, f, g, line > 0 ? line : 0, self, total };
	return r;
}

static int put_twig(struct pruner *p, uint32_t at, int32_t parent)
{
	const struct twig *t = &p->g->twigs.v[at];
	auto_done(buf) struct buf function = { 0 }, file = { 0 };
	const struct place *place = t->parent ? stack_code_place(p->g->book, t->code) : NULL;

	name_frame(p->g, t, &function, &file);
	return put_node(p, parent, buf_text(&function), buf_text(&file), place ? place->line : 0,
			t->self, t->total);
}

/* A twig that is written, and how far its children are. */
struct open_twig {
	int32_t node;
	size_t first, n, at; /* its kept children in `order` */
	double other;        /* seconds of those that are not */
};

/* Puts the kept children of a twig at the end of order[], the longest first. */
static struct open_twig open_children(struct pruner *p, uint32_t at, int32_t node, size_t first)
{
	struct open_twig o = { .node = node, .first = first };
	const struct twig *v = p->g->twigs.v;

	for (uint32_t c = v[at].child; c; c = v[c].next) {
		if (v[c].kept)
			p->order[first + o.n++] = c;
		else
			o.other += v[c].total;
	}
	qsort_r(p->order + first, o.n, sizeof(*p->order), by_total, p->g->twigs.v);
	return o;
}

/* Preorder, without recursion: a stack is as deep as a program likes. */
static int write_tree(struct pruner *p)
{
	struct open_twig stack[STACK_CODES_MAX + 4];
	size_t depth = 0;
	int r = 0;

	stack[0] = open_children(p, 0, -1, 0);
	while (r == 0) {
		struct open_twig *o = &stack[depth];
		uint32_t at;

		if (o->at < o->n) {
			at = p->order[o->first + o->at++];
			r = put_twig(p, at, o->node);
			if (r == 0 && depth + 1 < ARRAY_LEN(stack)) {
				stack[depth + 1] = open_children(
				    p, at, (int32_t)p->out->nodes.n - 1, o->first + o->n);
				depth++;
			}
			continue;
		}
		if (o->other > 0)
			r = put_node(p, o->node, "(other)", "", 0, o->other, o->other);
		if (!depth)
			break;
		depth--;
	}
	return r;
}

/* Nodes there will be with the n longest kept: each that loses children gets an "(other)". */
static size_t count_nodes(struct grower *g, const uint32_t *order, size_t n)
{
	size_t count = n;

	for (size_t i = 0; i < g->twigs.n; i++)
		g->twigs.v[i].kept = i == 0;
	for (size_t i = 0; i < n; i++)
		g->twigs.v[order[i]].kept = true;
	for (size_t i = 0; i < g->twigs.n; i++) {
		bool loses = false;

		for (uint32_t c = g->twigs.v[i].kept ? g->twigs.v[i].child : 0; c && !loses;
		     c = g->twigs.v[c].next)
			loses = !g->twigs.v[c].kept;
		count += loses;
	}
	return count;
}

/* Keeps as many as may be, and fewer where their names are long. */
static int prune(struct grower *g, size_t most, size_t text, struct flame *ret)
{
	size_t n = g->twigs.n - 1, keep = n < most ? n : most;
	auto_free uint32_t *order = calloc(n + 1, sizeof(*order));
	auto_free uint32_t *scratch = calloc(n + 1, sizeof(*scratch));
	int r = 0;

	if (!order || !scratch)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)(i + 1);
	qsort_r(order, n, sizeof(*order), by_total, g->twigs.v);
	for (;; keep = keep * 4 / 5) {
		struct pruner p = { .g = g, .out = ret, .order = scratch };
		uint32_t none;

		if (count_nodes(g, order, keep) > most && keep > 1)
			continue;
		ret->total_s = g->twigs.v[0].total;
		r = intern(&p, "", &none);
		if (r == 0)
			r = write_tree(&p);
		map_done(&p.by_hash);
		if (r < 0 || p.text <= text || keep <= 1)
			return r;
		flame_done(ret);
		*ret = (struct flame){ 0 };
	}
}

int flame_take(const struct window *w, const struct verdict *v, size_t most, size_t text,
	       struct flame *ret)
{
	auto_done(grower) struct grower g = { .w = w, .book = window_book(w), .roles = v->roles.v };
	struct flame f = { 0 };
	int r;

	*ret = f;
	for (size_t i = 0; i < v->roles.n; i++)
		if (!map_put(&g.role_of, v->roles.v[i].thread, (uint32_t)i))
			return -ENOMEM;
	r = g.book ? window_stacks(w, take_slice, &g) : -ENODATA;
	if (r == 0)
		r = g.error;
	if (r == -ENODATA || (r == 0 && !g.sum.lines.n))
		return 0;
	if (r == 0 && !vec_push(&g.twigs))
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < g.sum.lines.n; i++)
		grow_line(&g, &g.sum.lines.v[i]);
	if (r == 0)
		r = prune(&g, most ? most : FLAME_NODES, text, &f);
	if (r < 0)
		flame_done(&f);
	else
		*ret = f;
	return r;
}

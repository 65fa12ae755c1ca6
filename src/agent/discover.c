/* SPDX-License-Identifier: MIT */
#include "agent/discover.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MOST = 256 }; /* a table that was made up may go round in circles */

const char *framework_in(const char *maps, size_t n)
{
	/* Files that only the framework itself brings: ".../torch/lib/libtorch_cpu.so" */
	static const struct {
		const char *file, *name;
	} files[] = {
		{ "/libtorch_cpu", "torch" },
		{ "/libtorch.so", "torch" },
		{ "/libtensorflow_framework", "tensorflow" },
		{ "/_pywrap_tensorflow", "tensorflow" },
		{ "/jaxlib/", "jax" },
		{ "/libmxnet", "mxnet" },
		{ "/libpaddle", "paddle" },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (memmem(maps, n, files[i].file, strlen(files[i].file)))
			return files[i].name;
	return NULL;
}

/* Screens and managers of GPUs have a context and train nothing; Spotter itself is none of it either, with whatever name
 * a copy of one of its threads has ("spotter-sample": what stands between it and a GPU helper). */
static bool is_other(const char *name)
{
	static const char *const others[] = {
		"spotter",      "Xorg",          "Xwayland",        "gnome-shell",   "kwin_x11",
		"kwin_wayland", "nv-hostengine", "nvidia-persiste", "dcgm-exporter", "nvidia-smi",
	};

	if (strncmp(name, "spotter-", 8) == 0)
		return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(name, others[i]) == 0)
			return true;
	return false;
}

static int32_t rank_of(const struct disc_proc *p)
{
	return p->rank_hint >= 0 ? p->rank_hint : p->env->rank;
}

/* Lower is surer; a process without a rank comes last. */
static int sureness(const struct disc_proc *p)
{
	if (p->rank_hint >= 0)
		return 0;
	return p->env->rank >= 0 ? (int)p->env->rank_source : 100;
}

/* The only rank there is may be a variable that somebody once exported: it names a training, and makes none. */
static bool is_one_of_many(const struct disc_proc *p)
{
	return p->rank_hint >= 0 || (p->env->rank >= 0 && p->env->world != 1);
}

static bool trains(const struct disc_proc *p)
{
	return !is_other(p->name) && (p->gpu || p->framework || p->record || is_one_of_many(p));
}

/* Walks to the root: `each` of the ancestors, nearest first, until -1. */
static int up(const struct disc_proc *procs, size_t n, int at, int *depth)
{
	int parent = procs[at].parent;

	if (parent < 0 || (size_t)parent >= n || parent == at || ++*depth > DEPTH_MOST)
		return -1;
	return parent;
}

struct found {
	bool trains, launches;
	char run_id[RUN_ID_SIZE];
	enum run_source source;
	int32_t rank;
};

static void find_launchers(const struct disc_proc *procs, size_t n, struct found *f)
{
	for (size_t i = 0; i < n; i++) {
		int depth = 0;

		if (!f[i].trains || f[i].rank < 0)
			continue;
		for (int a = up(procs, n, (int)i, &depth); a >= 0; a = up(procs, n, a, &depth))
			if (f[a].trains && !procs[a].gpu &&
			    sureness(&procs[a]) > sureness(&procs[i]))
				f[a].launches = true;
	}
}

/* By its environment; else that of the record above it; else by the topmost process that trains. */
static void name_run(const struct disc_proc *procs, size_t n, size_t at, struct found *f)
{
	const struct disc_proc *p = &procs[at];
	const struct disc_proc *top = p;
	const char *record = p->record;
	const struct job_env *above = NULL;
	int depth = 0;

	if (p->env->source != SOURCE_NONE) {
		text_copy(f[at].run_id, sizeof(f[at].run_id), p->env->run_id);
		f[at].source = p->env->source;
		return;
	}
	for (int a = up(procs, n, (int)at, &depth); a >= 0; a = up(procs, n, a, &depth)) {
		if (!f[a].trains)
			continue;
		top = &procs[a];
		if (!record)
			record = procs[a].record;
		if (!above && procs[a].env->source != SOURCE_NONE)
			above = procs[a].env;
	}
	if (above) {
		text_copy(f[at].run_id, sizeof(f[at].run_id), above->run_id);
		f[at].source = above->source;
	} else if (record && record[0]) {
		text_safe_copy(f[at].run_id, sizeof(f[at].run_id), record);
		f[at].source = SOURCE_SPOTTER;
	} else {
		snprintf(f[at].run_id, sizeof(f[at].run_id), "p-%016llx",
			 (unsigned long long)top->identity);
		f[at].source = SOURCE_PROCESS;
	}
}

static bool same_rank(const struct found *a, const struct found *b)
{
	return (a->rank == b->rank || b->rank < 0) && strcmp(a->run_id, b->run_id) == 0;
}

/* The topmost process with the identity of this one, itself when there is none. */
static int root_of(const struct disc_proc *procs, size_t n, const struct found *f, size_t at)
{
	int root = (int)at, depth = 0;

	for (int a = up(procs, n, (int)at, &depth); a >= 0; a = up(procs, n, a, &depth))
		if (f[a].trains && !f[a].launches && same_rank(&f[a], &f[at]))
			root = a;
	return root;
}

/* The nearest process above that has a rank already. */
static int rank_above(const struct disc_proc *procs, size_t n, size_t at)
{
	int depth = 0;

	for (int a = up(procs, n, (int)at, &depth); a >= 0; a = up(procs, n, a, &depth))
		if (procs[a].rank >= 0)
			return procs[a].rank;
	return -1;
}

/* Forked from the trainer (the same arguments), or started by multiprocessing to be one of its workers. */
static bool is_loader(const struct disc_proc *p, const struct disc_proc *root)
{
	if (strncmp(p->name, "pt_data_worker", 14) == 0)
		return true;
	if (strstr(p->cmdline, "resource_tracker"))
		return false;
	if (strstr(p->cmdline, "multiprocessing.spawn") ||
	    strstr(p->cmdline, "multiprocessing.forkserver"))
		return true;
	return p->cmdline[0] && strcmp(p->cmdline, root->cmdline) == 0;
}

static int add_rank(struct disc_proc *procs, const struct found *f, int root,
		    struct disc_ranks *ret)
{
	struct disc_rank *r = vec_push(&ret->v);

	if (!r)
		return -ENOMEM;
	*r = (struct disc_rank){ .root = root,
				 .source = f[root].source,
				 .rank = f[root].rank,
				 .local_rank = procs[root].env->local_rank,
				 .world = procs[root].env->world,
				 .framework = procs[root].framework ? procs[root].framework : "" };
	text_copy(r->run_id, sizeof(r->run_id), f[root].run_id);
	procs[root].rank = (int)ret->v.n - 1;
	return 0;
}

static int take_ranks(struct disc_proc *procs, size_t n, const struct found *f,
		      struct disc_ranks *ret)
{
	for (size_t i = 0; i < n; i++) {
		int root;

		if (!f[i].trains || f[i].launches)
			continue;
		root = root_of(procs, n, f, i);
		if (procs[root].rank < 0 && add_rank(procs, f, root, ret) < 0)
			return -ENOMEM;
		procs[i].rank = procs[root].rank;
		if (procs[i].framework && !ret->v.v[procs[i].rank].framework[0])
			ret->v.v[procs[i].rank].framework = procs[i].framework;
	}
	return 0;
}

int discover(struct disc_proc *procs, size_t n, struct disc_ranks *ret)
{
	struct found *f = calloc(n ? n : 1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	ret->v.n = 0;
	for (size_t i = 0; i < n; i++) {
		procs[i].rank = -1;
		procs[i].role = VIEW_OTHER;
		f[i].trains = trains(&procs[i]);
		f[i].rank = rank_of(&procs[i]);
	}
	find_launchers(procs, n, f);
	for (size_t i = 0; i < n; i++)
		if (f[i].trains)
			name_run(procs, n, i, f);
	r = take_ranks(procs, n, f, ret);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct disc_rank *of;

		if (procs[i].rank < 0 && !f[i].launches && !is_other(procs[i].name))
			procs[i].rank = rank_above(procs, n, i);
		if (procs[i].rank < 0)
			continue;
		of = &ret->v.v[procs[i].rank];
		if (of->root == (int)i || procs[i].gpu)
			procs[i].role = VIEW_TRAINER;
		else if (is_loader(&procs[i], &procs[of->root]))
			procs[i].role = VIEW_DATALOADER;
	}
	free(f);
	return r;
}

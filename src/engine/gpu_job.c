/* SPDX-License-Identifier: MIT */
#include "engine/gpu_job.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_LOOK_S = 2, /* imports take that long: earlier there is little to see */
	LAST_LOOK_S = 160,
	ENVIRON_MAX = 256 << 10,
};

void gpu_job_init(struct gpu_job *j, int root)
{
	*j = (struct gpu_job){ .first_namespace = gpu_first_namespace(root) };
}

void gpu_job_done(struct gpu_job *j)
{
	vec_done(&j->members);
	map_done(&j->by_entity);
}

static struct gpu_member *member(const struct gpu_job *j, uint32_t id)
{
	uint32_t at;

	return map_get(&j->by_entity, id, &at) ? &j->members.v[at] : NULL;
}

static void add(struct gpu_job *j, const struct life *l, int64_t now_ns)
{
	struct gpu_member *m = vec_push(&j->members);

	if (!m)
		return;
	if (!map_put(&j->by_entity, l->id, (uint32_t)(j->members.n - 1))) {
		j->members.n--;
		return;
	}
	*m = (struct gpu_member){ .id = l->id,
				  .is = { .pid = (pid_t)l->key },
				  .look_ns = now_ns + FIRST_LOOK_S * NS_PER_S,
				  .wait_ns = FIRST_LOOK_S * NS_PER_S };
}

/* The last one takes its place. */
static void drop(struct gpu_job *j, struct gpu_member *m)
{
	struct gpu_member *last = &j->members.v[j->members.n - 1];

	map_del(&j->by_entity, m->id);
	if (m != last) {
		*m = *last;
		map_put(&j->by_entity, m->id, (uint32_t)(m - j->members.v));
	}
	j->members.n--;
}

void gpu_job_follow(struct gpu_job *j, const struct frame *f)
{
	for (size_t i = 0; i < f->lives.n; i++) {
		const struct life *l = &f->lives.v[i];
		struct gpu_member *m = l->kind == ENTITY_PROC ? member(j, l->id) : NULL;

		if (l->kind != ENTITY_PROC)
			continue;
		if (l->change == LIFE_BORN && !m) {
			add(j, l, f->mono_ns);
		} else if (l->change == LIFE_GONE && m) {
			drop(j, m);
		} else if (m) { /* an exec: another program, maybe another environment */
			m->is.gpu_code = m->is.gpu_known = m->sees_known = m->told = false;
			m->wait_ns = FIRST_LOOK_S * NS_PER_S;
			m->look_ns = f->mono_ns + m->wait_ns;
		}
	}
}

static void read_names(struct gpu_member *m, int root)
{
	char path[48], text[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/status", m->is.pid);
	n = io_read(root, path, text, sizeof(text));
	if (n > 0)
		m->named = gpu_nspid(text, (size_t)n, &m->is);
}

static void read_mask(struct gpu_member *m, const struct gpu_snapshot *s, int root)
{
	char path[48];
	size_t n;
	int error;

	snprintf(path, sizeof(path), "proc/%d/environ", m->is.pid);
	auto_free char *text = io_slurp(root, path, ENVIRON_MAX, &n, &error);
	if (!text)
		return;
	gpu_visible_read(s, text, n, &m->sees);
	m->sees_known = true;
}

static void look(struct gpu_member *m, const struct gpu_snapshot *s, int root, struct frame *f)
{
	int code;

	if (!m->named)
		read_names(m, root);
	if (!m->sees_known)
		read_mask(m, s, root);
	code = m->is.gpu_code ? 1 : gpu_code_loaded(root, m->is.pid);
	m->is.gpu_known = code >= 0;
	m->is.gpu_code = code > 0;
	if (code >= 0 && (code > 0 || !m->told))
		frame_put(f, M_PROC_GPU_CODE, m->id, code);
	m->told = code >= 0;
	m->wait_ns *= 2;
	m->look_ns = f->mono_ns + m->wait_ns;
	/* Once it is there it stays; what has none for minutes will hardly get it. */
	if (code > 0 || m->wait_ns > LAST_LOOK_S * NS_PER_S)
		m->look_ns = INT64_MAX;
}

bool gpu_job_look(struct gpu_job *j, const struct gpu_snapshot *s, int root, struct frame *f)
{
	int left = GPU_JOB_LOOKS;

	for (size_t i = 0; i < j->members.n && left; i++) {
		struct gpu_member *m = &j->members.v[i];

		if (f->mono_ns < m->look_ns && (m->sees_known || m->look_ns != INT64_MAX))
			continue;
		look(m, s, root, f);
		left--;
	}
	return left < GPU_JOB_LOOKS;
}

void gpu_job_forget_masks(struct gpu_job *j)
{
	for (size_t i = 0; i < j->members.n; i++)
		j->members.v[i].sees_known = false;
}

static void unite(struct gpu_visible *sum, const struct gpu_visible *one, bool first)
{
	if (first) {
		*sum = *one;
		return;
	}
	for (int i = 0; i < GPU_DEVICES; i++)
		if (one->allowed[i] > sum->allowed[i])
			sum->allowed[i] = one->allowed[i];
	for (int v = 0; v < GPU_VENDORS; v++) {
		/* One process without a mask sees them all. */
		sum->masked[v] = sum->masked[v] && one->masked[v];
		sum->none[v] = sum->none[v] && one->none[v];
	}
}

bool gpu_job_visible(const struct gpu_job *j, struct gpu_visible *ret)
{
	bool any_code = false, first = true;

	for (size_t i = 0; i < j->members.n; i++)
		any_code |= j->members.v[i].sees_known && j->members.v[i].is.gpu_code;
	for (size_t i = 0; i < j->members.n; i++) {
		const struct gpu_member *m = &j->members.v[i];

		if (!m->sees_known || (any_code && !m->is.gpu_code))
			continue;
		unite(ret, &m->sees, first);
		first = false;
	}
	return !first;
}

/* Could it be the one the driver means? Then what decides is looked up now, due or not: the answer is
 * kept for the life of the process. */
static bool could_be(struct gpu_member *m, int root, int32_t driver_pid)
{
	int code;

	if (m->is.pid == driver_pid)
		return true;
	if (!m->named)
		read_names(m, root);
	for (size_t k = 0; k < ARRAY_LEN(m->is.inner); k++) {
		if (m->is.inner[k] != driver_pid)
			continue;
		if (!m->is.gpu_code) {
			code = gpu_code_loaded(root, m->is.pid);
			m->is.gpu_known = code >= 0;
			m->is.gpu_code = code > 0;
		}
		return true;
	}
	return false;
}

struct gpu_owner gpu_job_owner(struct gpu_job *j, int root, int32_t driver_pid)
{
	struct gpu_candidate few[64];
	size_t n = 0;
	char path[48], text[64];

	/* Only those it could be. */
	for (size_t i = 0; i < j->members.n && driver_pid > 0 && n + 1 < ARRAY_LEN(few); i++)
		if (could_be(&j->members.v[i], root, driver_pid))
			few[n++] = j->members.v[i].is;
	for (size_t i = 0; i < n; i++)
		if (few[i].pid == driver_pid)
			return gpu_owner_find(driver_pid, j->first_namespace, few, n);
	/* A process outside of the job. Whether it has GPU code matters only where its number may be
	 * an accident. */
	snprintf(path, sizeof(path), "proc/%d/comm", driver_pid);
	if (io_read(root, path, text, sizeof(text)) > 0) {
		int code = j->first_namespace && !n ? 1 : gpu_code_loaded(root, driver_pid);

		few[n++] = (struct gpu_candidate){ .pid = driver_pid,
						   .gpu_code = code > 0,
						   .gpu_known = code >= 0 };
	}
	return gpu_owner_find(driver_pid, j->first_namespace, few, n);
}

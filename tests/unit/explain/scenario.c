/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "scenario.h"

#include "base/num.h"
#include "model/gpu_tag.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>

/* Any time that is not 0. */
static const int64_t start_ns = 1000000000000;

struct words {
	char *v[64];
	size_t n;
};

static void split(char *line, struct words *w)
{
	w->n = 0;
	for (char *p = line; *p && w->n < 64;) {
		while (*p == ' ' || *p == '\t')
			*p++ = '\0';
		if (!*p || *p == '#')
			break;
		w->v[w->n++] = p;
		while (*p && *p != ' ' && *p != '\t')
			p++;
	}
	/* end the last word where a comment began */
	if (w->n)
		w->v[w->n - 1][strcspn(w->v[w->n - 1], " \t")] = '\0';
}

static double number(const struct words *w, size_t i)
{
	char *end;
	double v;

	assert_true(i < w->n);
	v = strtod(w->v[i], &end);
	if (*end)
		fail_msg("not a number: '%s'", w->v[i]);
	return v;
}

static struct scenario_entity *add_entity(struct scenario *s, double id, double parent,
					  enum entity_kind kind, double key, const char *name)
{
	struct scenario_entity *e = vec_push(&s->entities);

	assert_non_null(e);
	*e = (struct scenario_entity){ .id = (uint32_t)id,
				       .parent = (uint32_t)parent,
				       .kind = kind,
				       .key = (int64_t)key,
				       .to = -1 };
	snprintf(e->name, sizeof(e->name), "%s", name);
	return e;
}

static struct scenario_series *add_series(struct scenario *s, enum metric_id m, uint32_t entity)
{
	struct scenario_series *x = vec_push(&s->series);

	assert_non_null(x);
	x->metric = m;
	x->entity = entity;
	return x;
}

static void ramp(struct scenario *s, enum metric_id m, uint32_t entity, double last)
{
	struct scenario_series *x = add_series(s, m, entity);

	x->n = 2;
	x->at[0].t = -1; /* from its birth */
	x->at[1].t = -2; /* to its end */
	x->at[1].v = last;
}

static void parse_pool(struct scenario *s, const struct words *w)
{
	static uint32_t next = 100000;

	for (int i = 0; i < (int)number(w, 2); i++) {
		uint32_t id = next++;

		add_entity(s, id, number(w, 1), ENTITY_THREAD, id, "worker");
		ramp(s, M_THREAD_CPU, id, number(w, 3));
		ramp(s, M_THREAD_RUN_DELAY, id, number(w, 4));
		ramp(s, M_THREAD_SLICES, id, number(w, 5));
	}
}

static void parse_process(struct scenario *s, const struct words *w)
{
	struct scenario_entity *e =
	    add_entity(s, number(w, 1), ID_JOB, ENTITY_PROC, number(w, 2), w->v[3]);

	for (size_t i = 4; i + 1 < w->n; i += 2) {
		if (strcmp(w->v[i], "from") == 0)
			e->from = number(w, i + 1);
		else if (strcmp(w->v[i], "to") == 0)
			e->to = number(w, i + 1);
		else if (strcmp(w->v[i], "of") == 0)
			e->parent = (uint32_t)number(w, i + 1);
		else if (strcmp(w->v[i], "command") == 0)
			snprintf(e->detail, sizeof(e->detail), "%s", w->v[i + 1]);
		else
			fail_msg("process: '%s'?", w->v[i]);
	}
}

static void parse_gpu(struct scenario *s, const struct words *w)
{
	struct gpu_tag tag = { .vendor = "nvidia", .driver = "590.48.01" };
	int index = (int)number(w, 2), part = -1;
	double parent = ID_HOST, from = 0, to = -1;
	struct scenario_entity *e;

	for (size_t i = 4; i < w->n; i++) {
		if (strcmp(w->v[i], "simulated") == 0)
			tag.simulated = true;
		else if (strcmp(w->v[i], "unified") == 0)
			tag.unified = true;
		else if (strcmp(w->v[i], "part") == 0)
			part = (int)number(w, ++i);
		else if (strcmp(w->v[i], "of") == 0)
			parent = number(w, ++i);
		else if (strcmp(w->v[i], "to") == 0)
			to = number(w, ++i);
		else if (strcmp(w->v[i], "from") == 0)
			from = number(w, ++i);
		else if (strcmp(w->v[i], "vendor") == 0 && i + 1 < w->n)
			snprintf(tag.vendor, sizeof(tag.vendor), "%s", w->v[++i]);
		else if (strcmp(w->v[i], "profile") == 0 && i + 1 < w->n)
			snprintf(tag.profile, sizeof(tag.profile), "%s", w->v[++i]);
		else
			fail_msg("gpu: '%s'?", w->v[i]);
	}
	snprintf(tag.uuid, sizeof(tag.uuid), "GPU-%d-%d", index, part);
	e = add_entity(s, number(w, 1), parent, ENTITY_GPU, (double)gpu_key(index, part), w->v[3]);
	e->from = from;
	e->to = to;
	gpu_tag_write(&tag, e->detail, sizeof(e->detail));
}

static void parse_gpu_process(struct scenario *s, const struct words *w)
{
	struct scenario_entity *e =
	    add_entity(s, number(w, 1), number(w, 2), ENTITY_GPU_PROC, number(w, 3), w->v[4]);

	if (!e->key)
		snprintf(e->detail, sizeof(e->detail), "pid 4711 of the driver: not visible here");
	for (size_t i = 5; i + 1 < w->n; i += 2) {
		if (strcmp(w->v[i], "from") == 0)
			e->from = number(w, i + 1);
		else if (strcmp(w->v[i], "to") == 0)
			e->to = number(w, i + 1);
		else
			fail_msg("gpuproc: '%s'?", w->v[i]);
	}
}

static void parse_mount(struct scenario *s, const struct words *w)
{
	struct scenario_entity *e = add_entity(s, number(w, 1), ID_HOST, ENTITY_MOUNT, 0, w->v[2]);

	assert_true(w->n >= 4);
	snprintf(e->detail, sizeof(e->detail), "%s on %s from %s", w->v[3], w->v[2],
		 w->n > 4 ? w->v[4] : w->v[3]);
}

static void parse_run(struct scenario *s, const struct words *w)
{
	s->seconds = number(w, 1);
	for (size_t i = 2; i < w->n; i++) {
		if (strcmp(w->v[i], "attached") == 0)
			s->run.attached = true;
		else if (strcmp(w->v[i], "hz") == 0)
			s->run.hz = number(w, ++i);
		else if (strcmp(w->v[i], "stacks") == 0)
			s->stack_hz = number(w, ++i);
		else
			fail_msg("run: '%s'?", w->v[i]);
	}
}

/* "metric" or "metric@entity" */
static enum metric_id parse_metric(const struct scenario *s, char *word, uint32_t *ret_entity)
{
	char *at = strchr(word, '@');
	const struct metric *m;

	if (at)
		*at++ = '\0';
	m = metric_by_name(word);
	if (!m)
		fail_msg("no metric '%s'", word);
	*ret_entity = m->entity == ENTITY_HOST   ? ID_HOST
		      : m->entity == ENTITY_JOB  ? ID_JOB
		      : m->entity == ENTITY_SELF ? ID_SELF
						 : 0;
	if (at)
		*ret_entity = (uint32_t)strtoul(at, NULL, 10);
	for (size_t i = 0; i < s->entities.n && !*ret_entity; i++)
		if (s->entities.v[i].kind == m->entity)
			*ret_entity = s->entities.v[i].id;
	return m->id;
}

static void parse_series(struct scenario *s, const struct words *w)
{
	uint32_t entity;
	enum metric_id m = parse_metric(s, w->v[0], &entity);
	struct scenario_series *x = add_series(s, m, entity);

	if (w->n == 3 && !strchr(w->v[1], ':')) {
		x->n = 2;
		x->at[0].t = -1;
		x->at[0].v = number(w, 1);
		x->at[1].t = -2;
		x->at[1].v = number(w, 2);
		return;
	}
	for (size_t i = 1; i < w->n; i++) {
		char *colon = strchr(w->v[i], ':');

		assert_true(x->n < SCENARIO_CURVE);
		x->at[x->n].t = colon ? strtod(w->v[i], NULL) : 0;
		x->at[x->n].v = colon ? strtod(colon + 1, NULL) : number(w, i);
		x->n++;
	}
	assert_true(x->n > 0);
}

static void parse_gap(struct scenario *s, const struct words *w)
{
	static const char *const names[] = { "not_supported", "no_permission", "lost", "stale" };
	struct window_gap *g = vec_push(&s->gaps);

	assert_true(g && w->n == 3);
	g->metric = parse_metric(s, w->v[1], &g->entity);
	if (!strchr(w->v[1], '@') && metrics[g->metric].entity == ENTITY_THREAD)
		g->entity = ID_JOB;
	for (int i = 0; i < 4; i++)
		if (strcmp(names[i], w->v[2]) == 0)
			g->why = (enum gap_why)i;
}

static void parse_event(struct scenario *s, const struct words *w)
{
	struct scenario_event *e = vec_push(&s->events);
	bool has_value = w->n > 5 && strcmp(w->v[4], "value") == 0;
	size_t n = 0;

	assert_non_null(e);
	*e = (struct scenario_event){ .kind = event_kind_by_name(w->v[1]),
				      .entity = (uint32_t)number(w, 2),
				      .t = number(w, 3),
				      .value = has_value ? number(w, 5) : 1 };
	assert_true(e->kind != EVENT_KINDS);
	for (size_t i = has_value ? 6 : 4; i < w->n && n < sizeof(e->text); i++)
		n += (size_t)snprintf(e->text + n, sizeof(e->text) - n, "%s%s", n ? " " : "",
				      w->v[i]);
}

static void parse_expect(struct scenario *s, const struct words *w)
{
	struct scenario_expect *x = vec_push(&s->expects);

	assert_true(x && w->n == 3);
	snprintf(x->what, sizeof(x->what), "%s", w->v[1]);
	snprintf(x->answer, sizeof(x->answer), "%s", w->v[2]);
}

static void read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		fail_msg("cannot open '%s'", path);
	n = fread(text, 1, size - 1, f);
	fclose(f);
	text[n] = '\0';
}

static void parse_text(struct scenario *s, const char *text);

/* A file beside this one. */
static void include(struct scenario *s, const char *name)
{
	char path[512], text[8192];
	const char *slash = strrchr(s->path, '/');

	snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - s->path) : 0, s->path, name);
	read_file(path, text, sizeof(text));
	parse_text(s, text);
}

static void parse_line(struct scenario *s, char *line)
{
	struct words w;

	split(line, &w);
	if (!w.n)
		return;
	if (strcmp(w.v[0], "run") == 0) {
		parse_run(s, &w);
	} else if (strcmp(w.v[0], "include") == 0) {
		include(s, w.v[1]);
	} else if (strcmp(w.v[0], "exit") == 0) {
		s->run.has_exit = true;
		s->run.exit_code = (int)number(&w, 1);
	} else if (strcmp(w.v[0], "signal") == 0) {
		s->run.has_exit = true;
		s->run.exit_code = -1;
		s->run.exit_signal = (int)number(&w, 1);
	} else if (strcmp(w.v[0], "rusage") == 0) {
		s->run.rusage_cpu_ns = (int64_t)(number(&w, 1) * 1e9);
	} else if (strcmp(w.v[0], "machine") == 0) {
		s->run.machine.cpus = (int)number(&w, 1);
		s->run.machine.threads_per_core = (int)number(&w, 2);
	} else if (strcmp(w.v[0], "process") == 0) {
		parse_process(s, &w);
	} else if (strcmp(w.v[0], "thread") == 0) {
		add_entity(s, number(&w, 1), number(&w, 2), ENTITY_THREAD, number(&w, 3), w.v[4]);
	} else if (strcmp(w.v[0], "pool") == 0) {
		parse_pool(s, &w);
	} else if (strcmp(w.v[0], "cgroup") == 0) {
		add_entity(s, number(&w, 1), ID_JOB, ENTITY_CGROUP, 0, w.v[2]);
	} else if (strcmp(w.v[0], "mount") == 0) {
		parse_mount(s, &w);
	} else if (strcmp(w.v[0], "gpu") == 0) {
		parse_gpu(s, &w);
	} else if (strcmp(w.v[0], "gpuproc") == 0) {
		parse_gpu_process(s, &w);
	} else if (strcmp(w.v[0], "gap") == 0) {
		parse_gap(s, &w);
	} else if (strcmp(w.v[0], "event") == 0) {
		parse_event(s, &w);
	} else if (strcmp(w.v[0], "expect") == 0) {
		parse_expect(s, &w);
	} else if (!scenario_stack_line(s, w.v, w.n) && !scenario_mark_line(s, w.v, w.n)) {
		parse_series(s, &w);
	}
}

static void parse_text(struct scenario *s, const char *text)
{
	while (*text) {
		char line[1024];
		size_t n = strcspn(text, "\n");

		assert_true(n < sizeof(line));
		memcpy(line, text, n);
		line[n] = '\0';
		parse_line(s, line);
		text += n + (text[n] == '\n');
	}
}

void scenario_parse(struct scenario *s, const char *text)
{
	char *argv[] = { (char *)"python3", (char *)"train.py", NULL };

	s->run = (struct run_info){ .id = "20260101-120000-abcd",
				    .name = "train.py",
				    .version = "test",
				    .started_wall_ns = 1767268800ll * 1000000000,
				    .started_mono_ns = start_ns,
				    .hz = 2,
				    .level = 1,
				    .pid = 100,
				    .rusage_cpu_ns = -1,
				    .rusage_maxrss_bytes = -1,
				    .machine = { .hostname = "box", .kernel = "6.1" } };
	assert_int_equal(run_info_set_argv(&s->run, argv), 0);
	add_entity(s, ID_HOST, 0, ENTITY_HOST, 0, "box");
	add_entity(s, ID_JOB, ID_HOST, ENTITY_JOB, 0, "train.py");
	add_entity(s, ID_SELF, ID_HOST, ENTITY_SELF, 0, "spotter");
	parse_text(s, text);
	s->run.level = s->does.n ? 2 : s->run.level;
	s->run.state = s->run.has_exit ? RUN_ENDED : RUN_GOING;
	s->run.ended_mono_ns = start_ns + (int64_t)(s->seconds * 1e9);
}

void scenario_load(struct scenario *s, const char *path)
{
	char text[16384];

	read_file(path, text, sizeof(text));
	snprintf(s->path, sizeof(s->path), "%s", path);
	scenario_parse(s, text);
}

void scenario_done(struct scenario *s)
{
	run_info_done(&s->run);
	vec_done(&s->entities);
	vec_done(&s->series);
	vec_done(&s->expects);
	vec_done(&s->gaps);
	vec_done(&s->events);
	vec_done(&s->stacks);
	vec_done(&s->does);
	vec_done(&s->marks);
	stack_book_done(&s->book);
}

const char *scenario_answer(const struct verdict *v, const char *cause)
{
	for (size_t i = 0; i < v->findings.n; i++)
		if (strcmp(v->findings.v[i].cause, cause) == 0)
			return "yes";
	for (size_t i = 0; i < v->notes.n; i++)
		if (strcmp(v->notes.v[i].cause, cause) == 0)
			return "note";
	for (size_t i = 0; i < v->blind.n; i++)
		if (strcmp(v->blind.v[i].cause, cause) == 0)
			return "blind";
	return "no";
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

size_t scenario_list(const char *folder, char paths[][256], size_t max)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	size_t n = 0;

	if (!d)
		fail_msg("cannot open '%s'", folder);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len <= 4 || strcmp(e->d_name + len - 4, ".scn") != 0)
			continue;
		assert_true(n < max);
		snprintf(paths[n++], 256, "%s/%s", folder, e->d_name);
	}
	closedir(d);
	qsort(paths, n, sizeof(paths[0]), by_name);
	return n;
}

/* SPDX-License-Identifier: MIT
 *
 * How the run ended: well, with an error, by a signal; which processes died by SIGBUS (a page of a shared
 * file that could not be had: /dev/shm was full), and how full /dev/shm was.
 */
#include "explain/fact.h"
#include "explain/scene.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { SHELL = 128 }; /* a shell says 128 + number when a signal ended its child */

/* 0: it ended by itself. */
static int signal_of(const struct run_info *run)
{
	if (run->exit_signal)
		return run->exit_signal;
	return run->exit_code > SHELL && run->exit_code < SHELL + 65 ? run->exit_code - SHELL : 0;
}

/* Somebody, a scheduler or a closed terminal stopped it: no fault of its own. */
static bool was_stopped(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGHUP;
}

static void say_end(struct facts *f, enum fact_id id, const struct run_info *run)
{
	int sig = signal_of(run);
	const char *name = sig > 0 ? sigabbrev_np(sig) : NULL;
	char text[40];

	if (name)
		snprintf(text, sizeof(text), "SIG%s", name);
	else if (run->exit_signal)
		snprintf(text, sizeof(text), "signal %d", run->exit_signal);
	else
		snprintf(text, sizeof(text), "status %d", run->exit_code);
	fact_set_subject(f, id, 0, text);
}

static void ending(const struct scene *s, struct facts *f)
{
	const struct run_info *run = s->run;
	bool well = run->has_exit && run->exit_code == 0 && !run->exit_signal;

	if (run->state == RUN_INTERRUPTED && !run->has_exit) {
		fact_absent(f, FACT_RUN_FAILED, "the recording broke off before the program ended");
		fact_absent_like(f, FACT_RUN_DONE, FACT_RUN_FAILED);
		return;
	}
	fact_set(f, FACT_RUN_DONE, well);
	fact_set(f, FACT_RUN_FAILED, run->has_exit && !well && !was_stopped(signal_of(run)));
	if (run->has_exit)
		say_end(f, FACT_RUN_FAILED, run);
}

static void bus_errors(const struct scene *s, struct facts *f)
{
	const struct run_info *run = s->run;
	size_t n;
	const struct window_event *e = s->whole->ops->events(s->whole->src, &n);
	const struct member *first = NULL;
	double dead = 0;

	for (size_t i = 0; i < n; i++) {
		const struct member *m =
		    e[i].kind == EVENT_EXIT ? scene_member(s, e[i].entity) : NULL;

		if (!m || m->is_main || e[i].value != SHELL + SIGBUS)
			continue;
		dead++;
		first = first ? first : m;
	}
	if (run->has_exit && signal_of(run) == SIGBUS) {
		dead++;
		first = first ? first : scene_member(s, s->main_proc);
	}
	fact_set(f, FACT_RUN_SIGBUS, dead);
	if (first)
		fact_set_subject(f, FACT_RUN_SIGBUS, first->id, first->name);
}

/* What hooks heard at the exit of a process: "exception.out_of_memory", 1 or 0. */
static void exception(const struct scene *s, struct facts *f, enum fact_id id, const char *name)
{
	const struct window_scalar *v;
	size_t n = 0;

	fact_absent(f, id, "no hook heard which exception ended the program");
	v = s->whole->ops->settings ? s->whole->ops->settings(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].name, name) == 0 && !(fact_or(f, id, 0) > 0))
			fact_set(f, id, v[i].value > 0);
}

/* Is it this file, by its name without folders? */
static bool is_file(const struct place *p, const char *name)
{
	const char *slash = p && p->kind == PLACE_PYTHON && p->file && !place_is_library(p)
				? strrchr(p->file, '/')
				: NULL;

	return slash && strcmp(slash + 1, name) == 0;
}

/* "exception.at.train.py" 71 */
static void line_of_end(const struct scene *s, struct facts *f)
{
	static const char prefix[] = "exception.at.";
	const struct stack_book *book = s->activity.book;
	const struct window_scalar *v;
	const char *name = NULL;
	uint32_t near = 0;
	size_t n = 0;

	fact_absent_like(f, FACT_RUN_LINE, FACT_RUN_OUT_OF_MEMORY);
	v = s->whole->ops->settings ? s->whole->ops->settings(s->whole->src, &n) : NULL;
	for (size_t i = 0; i < n; i++) {
		if (strncmp(v[i].name, prefix, strlen(prefix)) != 0 || !(v[i].value >= 1) ||
		    v[i].value > 1e7)
			continue;
		name = v[i].name + strlen(prefix);
		fact_set(f, FACT_RUN_LINE, v[i].value);
	}
	if (!f->v[FACT_RUN_LINE].known)
		return;
	fact_set_subject(f, FACT_RUN_LINE, 0, name);
	/* any line of the file says which folder it is in, if there is one such file */
	for (uint32_t i = 1; book && i <= book->places.n; i++) {
		const struct place *p = stack_book_find_place(book, i);

		if (!is_file(p, name))
			continue;
		/* texts of a book are kept once */
		if (near && stack_book_find_place(book, near)->file != p->file)
			return;
		near = near ? near : i;
	}
	f->v[FACT_RUN_LINE].place = near;
}

/* The last of its name: a mount may be replaced. */
static const struct entity *find_shm(const struct scene *s)
{
	const struct entity_table *t = window_entities(s->whole);
	const struct entity *found = NULL;

	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].kind == ENTITY_MOUNT && t->rows.v[i].name &&
		    strcmp(t->rows.v[i].name, "/dev/shm") == 0)
			found = &t->rows.v[i];
	return found;
}

static void shared_memory(const struct scene *s, struct facts *f)
{
	const struct entity *e = find_shm(s);
	uint32_t id = e ? e->id : 0;
	struct series_stat size, left;

	if (!id) {
		fact_absent(f, FACT_SHM_FILL, "no file system on /dev/shm was recorded");
	} else if (window_stat(s->whole, M_MOUNT_SIZE, id, &size) < 0 || !(size.last > 0)) {
		fact_absent(f, FACT_SHM_FILL, "%s of /dev/shm: %s", metrics[M_MOUNT_SIZE].name,
			    window_why_absent(s->whole, M_MOUNT_SIZE, id));
	} else if (window_stat(s->whole, M_MOUNT_AVAILABLE, id, &left) < 0) {
		fact_absent(f, FACT_SHM_FILL, "%s of /dev/shm: %s", metrics[M_MOUNT_AVAILABLE].name,
			    window_why_absent(s->whole, M_MOUNT_AVAILABLE, id));
	} else {
		fact_set(f, FACT_SHM_SIZE, size.last);
		fact_set(f, FACT_SHM_FILL, fmin(1, fmax(0, 1 - left.min / size.last)));
		fact_set(f, FACT_SHM_FILL_LAST, fmin(1, fmax(0, 1 - left.last / size.last)));
		return;
	}
	fact_absent_like(f, FACT_SHM_SIZE, FACT_SHM_FILL);
	fact_absent_like(f, FACT_SHM_FILL_LAST, FACT_SHM_FILL);
}

static void compute(const struct scene *s, struct facts *f)
{
	ending(s, f);
	bus_errors(s, f);
	exception(s, f, FACT_RUN_OUT_OF_MEMORY, "exception.out_of_memory");
	exception(s, f, FACT_RUN_SHARED_MEMORY, "exception.shared_memory");
	line_of_end(s, f);
	shared_memory(s, f);
}

const struct fact_source death_facts = { "death", compute };

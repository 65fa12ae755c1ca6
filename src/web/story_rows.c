/* SPDX-License-Identifier: MIT
 *
 * The tables of a page: processes, machine, settings, and the pages about the causes it names.
 */
#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "base/text.h"
#include "explain/rows.h"
#include "explain/verdict.h"
#include "model/run.h"
#include "web/assets.h"
#include "web/story.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PROCESSES_SHOWN = 60, COMMAND_BYTES = 240, SETTINGS_SHOWN = 100, GPUS_SHOWN = 32 };

/* No figure of a machine is larger; one of an edited record may be. */
static const double figure_most = 1e24;

/* On one line: `python -c` has programs of several. */
static const char *one_line(const char *text, char *buf, size_t size)
{
	char flat[512];

	text_copy(flat, sizeof(flat), text);
	for (char *c = flat; *c; c++)
		*c = strchr("\n\r\t", *c) ? ' ' : *c;
	return text_safe_copy(buf, size, flat);
}

static void put_safe(struct json *j, const char *key, const char *text, size_t most)
{
	char safe[512];

	json_key_str(j, key,
		     one_line(text, safe, most + 1 < sizeof(safe) ? most + 1 : sizeof(safe)));
}

static const char *role_of(const struct verdict *v, uint32_t process)
{
	for (size_t i = 0; i < v->roles.n; i++)
		if (v->roles.v[i].process == process && v->roles.v[i].first)
			return v->roles.v[i].role;
	return NULL;
}

static void put_figure(struct json *j, const char *key, double v)
{
	if (fabs(v) <= figure_most)
		story_key_number(j, key, v);
}

static void put_processes(const struct story *s, struct json *j)
{
	auto_free struct process_row *rows = NULL;
	size_t n = process_rows(s->window, &rows), most = PROCESSES_SHOWN >> s->level;

	json_key_begin(j, "processes", '[');
	for (size_t i = 0; i < n && i < most; i++) {
		const struct entity *e = rows[i].entity;

		json_begin(j, '{');
		json_key_int(j, "pid", e->key);
		put_safe(j, "name", e->name ? e->name : "", 64);
		if (e->detail && e->detail[0])
			put_safe(j, "command", e->detail, COMMAND_BYTES);
		json_key_str(j, "role", role_of(s->verdict, e->id));
		put_figure(j, "cpu_s", rows[i].cpu_s);
		put_figure(j, "lived_s", rows[i].lived_s);
		put_figure(j, "peak_bytes", rows[i].rss_peak);
		put_figure(j, "read_bytes", rows[i].read);
		put_figure(j, "written_bytes", rows[i].written);
		json_end(j, '}');
	}
	json_end(j, ']');
	if (n > most)
		json_key_int(j, "processes_left", (int64_t)(n - most));
}

/* Texts that are "" are not known. */
static void put_pair(struct json *j, const char *name, const char *text)
{
	char safe[512];

	if (!text || !text[0])
		return;
	json_begin(j, '[');
	json_str(j, name);
	json_str(j, one_line(text, safe, sizeof(safe)));
	json_end(j, ']');
}

static void put_gpus(const struct usage *u, struct json *j)
{
	for (size_t i = 0; i < u->gpus.n && i < GPUS_SHOWN; i++) {
		const struct usage_gpu *g = &u->gpus.v[i];
		char name[160], number[40], text[256], memory[32] = "";

		snprintf(number, sizeof(number), g->partition < 0 ? "GPU %d" : "GPU %d:%d",
			 g->index, g->partition);
		if (isfinite(g->memory_total))
			num_bytes(g->memory_total, memory, sizeof(memory));
		snprintf(text, sizeof(text), "%s%s%s%s%s", usage_gpu_name(g, name, sizeof(name)),
			 memory[0] ? ", " : "", memory, g->simulated ? ", simulated" : "",
			 g->allowed == 0 ? ", hidden from the job" : "");
		put_pair(j, number, text);
	}
}

static void put_command(const struct run_info *run, struct json *j)
{
	auto_done(buf) struct buf line = { 0 };

	for (size_t i = 0; run->argv && run->argv[i] && line.len < 480; i++) {
		if (i)
			buf_char(&line, ' ');
		buf_str(&line, run->argv[i]);
	}
	put_pair(j, "Command", buf_text(&line));
}

static void put_machine(const struct story *s, struct json *j)
{
	const struct run_info *run = s->verdict->run;
	const struct machine *m = &run->machine;
	const struct usage *u = &s->verdict->usage;
	char a[32], b[32], text[160], iso[40];

	json_key_begin(j, "machine", '[');
	put_command(run, j);
	put_pair(j, "Folder", run->cwd);
	if (run->started_wall_ns > 0) {
		clock_iso(run->started_wall_ns, iso, sizeof(iso));
		put_pair(j, "Started", iso);
	}
	put_pair(j, "Host", m->hostname);
	if (isfinite(u->cores_allowed) && isfinite(u->cores_machine)) {
		snprintf(text, sizeof(text), "%s of %s cores%s%s",
			 num_cores(u->cores_allowed, a, sizeof(a)),
			 num_cores(u->cores_machine, b, sizeof(b)), u->cpu_limit ? ", limit: " : "",
			 u->cpu_limit ? u->cpu_limit : "");
		put_pair(j, "CPU", text);
	}
	put_pair(j, "CPU model", m->cpu_model);
	if (m->threads_per_core > 1) {
		snprintf(text, sizeof(text), "%d", m->threads_per_core);
		put_pair(j, "Threads per core", text);
	}
	if (m->memory_bytes > 0)
		put_pair(j, "Memory", num_bytes((double)m->memory_bytes, a, sizeof(a)));
	if (isfinite(u->memory_allowed)) {
		snprintf(text, sizeof(text), "%s%s%s", num_bytes(u->memory_allowed, a, sizeof(a)),
			 u->memory_limit ? ", limit: " : "",
			 u->memory_limit ? u->memory_limit : "");
		put_pair(j, "Memory allowed", text);
	}
	put_gpus(u, j);
	put_pair(j, "Kernel", m->kernel);
	put_pair(j, "Virtualisation", m->virtualisation);
	put_pair(j, "Recorded by Spotter", run->version);
	json_end(j, ']');
}

static void put_settings(const struct story *s, struct json *j)
{
	auto_free struct setting_row *rows = calloc(SETTINGS_SHOWN, sizeof(*rows));
	size_t n = rows ? setting_rows(s->window, &s->verdict->steps, rows, SETTINGS_SHOWN) : 0;

	json_key_begin(j, "settings", '[');
	for (size_t i = 0; i < n; i++)
		put_pair(j, rows[i].name, rows[i].values);
	json_end(j, ']');
}

const char *cause_page(const char *id)
{
	for (const struct cause_page *p = cause_pages; p->id; p++)
		if (strcmp(p->id, id) == 0)
			return p->text;
	return NULL;
}

static void put_docs(const struct verdict *v, struct json *j)
{
	json_key_begin(j, "docs", '{');
	for (const struct cause_page *p = cause_pages; p->id; p++) {
		bool named = false;

		for (size_t i = 0; i < v->findings.n; i++)
			named |= strcmp(v->findings.v[i].cause, p->id) == 0;
		for (size_t i = 0; i < v->notes.n; i++)
			named |= strcmp(v->notes.v[i].cause, p->id) == 0;
		if (named)
			json_key_str(j, p->id, p->text);
	}
	json_end(j, '}');
}

void story_rows(const struct story *s, struct json *j)
{
	put_processes(s, j);
	put_machine(s, j);
	put_settings(s, j);
	put_docs(s->verdict, j);
}

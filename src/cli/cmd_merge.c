/* SPDX-License-Identifier: MIT
 *
 * Records of the machines of one training as one run, so that its ranks can be held against each other
 * where nobody has a database for that.
 */
#include "cli/command.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/judge.h"
#include "cli/progress.h"
#include "explain/verdict.h"
#include "record/join.h"
#include "record/reader.h"
#include "record/store.h"
#include "record/writer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERDICT_LINES = 14 };

struct merge_options {
	struct common_options common;
	const char *out, *name;
	bool force, quiet;
};

struct merge_job {
	struct cli *cli;
	const struct merge_options *o;
	size_t n;
	struct record **records;
	char (*paths)[PATH_MAX];
	const char **labels; /* as the user called them */
	struct join join;
	struct store_place place;
	struct record_writer *writer;
	struct progress progress;
	bool made, written; /* there is a file of ours; it is whole */
};

static int open_all(struct merge_job *m, const struct opt_rest *rest, struct err *e)
{
	m->n = (size_t)rest->n;
	m->records = calloc(m->n, sizeof(*m->records));
	m->labels = calloc(m->n, sizeof(*m->labels));
	m->paths = calloc(m->n, sizeof(*m->paths));
	if (!m->records || !m->labels || !m->paths)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < m->n; i++) {
		int r = store_find(rest->v[i], m->paths[i], sizeof(m->paths[i]), e);

		m->labels[i] = rest->v[i];
		if (r == 0)
			r = judge_open(m->cli, m->paths[i], &m->records[i], e);
		if (r < 0)
			return r;
	}
	return 0;
}

static void tell(void *arg, double share)
{
	progress_share(arg, share);
}

/* The file is still open for writing: the reader comes as any other would. */
static int judge_merged(struct merge_job *m, struct buf *text, struct err *e)
{
	struct render_style style = { .color = m->cli->color_out,
				      .max_lines = VERDICT_LINES,
				      .width = cli_columns(STDOUT_FILENO) };
	auto_done(buf) struct buf json = { 0 };
	struct record *record = NULL;
	struct verdict verdict = { 0 };
	struct window whole;
	char why[80];
	int r = record_open_writing(m->place.path, &record, e);

	if (r < 0)
		return r;
	whole = record_window(record, 0, 0);
	r = explain(&whole, &verdict);
	if (r == 0) {
		render_json(&verdict, &json);
		if (buf_ok(&json))
			r = record_set_verdict(m->writer, buf_text(&json));
		if (m->o->common.json)
			buf_put(text, buf_text(&json), json.len);
		else
			render_text(&verdict, &style, text);
	}
	verdict_done(&verdict);
	record_close(record);
	return r < 0 ? err_set(e, r, "cannot explain the merged run: %s",
			       err_name(r, why, sizeof(why)))
		     : 0;
}

static int write_all(struct merge_job *m, struct buf *text, struct err *e)
{
	struct run_info *run = &m->join.run;
	struct record_options options = { .max_bytes = 0 };
	char why[80];
	int r;

	text_copy(run->version, sizeof(run->version), SPOTTER_VERSION);
	store_new_id(clock_wall_ns(), run->id, sizeof(run->id));
	if (m->o->name && m->o->name[0])
		text_safe_copy(run->name, sizeof(run->name), m->o->name);
	r = store_place(run->id, m->o->out, &m->place, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->n; i++)
		options.max_bytes += 4 * (uint64_t)record_bytes(m->records[i]);
	options.max_bytes += 256 << 20;
	/* They were thinned when they were recorded. */
	options.keep_raw_ns = run->ended_mono_ns - run->started_mono_ns + NS_PER_S;
	r = record_create(m->place.path, run, &options, &m->writer, e);
	if (r < 0)
		return r;
	m->made = true;
	progress_begin(&m->progress, "merging", m->o->quiet);
	r = join_write(&m->join, m->writer, tell, &m->progress);
	progress_end(&m->progress);
	if (r < 0)
		return err_set(e, r, "cannot write '%s': %s", m->place.path,
			       err_name(r, why, sizeof(why)));
	r = judge_merged(m, text, e);
	if (r < 0)
		return r;
	r = record_finish(steal_ptr(&m->writer), run);
	if (r < 0)
		return err_set(e, r, "cannot write '%s': %s", m->place.path,
			       err_name(r, why, sizeof(why)));
	r = store_settle(&m->place, e);
	m->written = r == 0;
	return r;
}

static void say_parts(const struct merge_job *m, struct buf *out)
{
	const struct join *j = &m->join;
	char ranks[128], shown[160];

	buf_printf(out, "Merged  %zu records of %zu machine%s, %zu ranks\n", j->parts.n,
		   j->machines.n, j->machines.n == 1 ? "" : "s", j->ranks);
	for (size_t i = 0; i < j->parts.n; i++) {
		const struct join_part *p = &j->parts.v[i];

		join_ranks_text(p, ranks, sizeof(ranks));
		buf_printf(out, "        %s",
			   text_safe_copy(shown, sizeof(shown), j->machines.v[p->machine].name));
		buf_printf(out, "%s%s", ranks[0] ? ": rank " : "", ranks);
		buf_printf(out, " (%s)\n", text_safe_copy(shown, sizeof(shown), p->label));
	}
}

static void put_notes(const struct merge_job *m, struct buf *out)
{
	const struct join *j = &m->join;
	char shown[JOIN_NOTE_BYTES];

	for (size_t i = 0; i < j->notes.n; i++)
		buf_printf(out, "%s%s\n", i ? "        " : "Notes   ",
			   text_safe_copy(shown, sizeof(shown), j->notes.v[i].text));
}

static void show(struct merge_job *m, const struct buf *verdict)
{
	const char *path = m->place.final[0] ? m->place.final : m->place.path;
	struct buf *out = &m->cli->out;
	char shown[PATH_MAX];

	if (m->o->common.json) {
		buf_put(out, buf_text(verdict), verdict->len);
		return;
	}
	say_parts(m, out);
	put_notes(m, out);
	buf_char(out, '\n');
	buf_put(out, buf_text(verdict), verdict->len);
	buf_printf(out, "Record  %s\n", text_safe_copy(shown, sizeof(shown), path));
}

/* What is not whole is gone. */
static void remove_half(const struct merge_job *m)
{
	static const char *const sides[] = { "", "-wal", "-shm" };
	char path[PATH_MAX + 8];

	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		snprintf(path, sizeof(path), "%s%s", m->place.path, sides[i]);
		unlink(path);
	}
}

static void merge_job_done(struct merge_job *m)
{
	if (m->writer)
		record_abandon(m->writer);
	if (m->made && !m->written)
		remove_half(m);
	join_done(&m->join);
	for (size_t i = 0; m->records && i < m->n; i++)
		record_close(m->records[i]);
	free(m->records);
	free(m->paths);
	free(m->labels);
}

static int run_merge(struct cli *cli, void *options, const struct opt_rest *rest)
{
	struct merge_job m = { .cli = cli, .o = options };
	auto_done(buf) struct buf verdict = { 0 };
	struct err e = { 0 };
	int r;

	r = open_all(&m, rest, &e);
	if (r == 0)
		r = join_open(&m.join, m.records, m.labels, m.n, m.o->force, &e);
	if (r == 0)
		r = write_all(&m, &verdict, &e);
	if (r == 0)
		show(&m, &verdict);
	merge_job_done(&m);
	return r < 0 ? cli_fail(cli, &e) : EXIT_OK;
}

static const struct example examples[] = {
	{ "merge node-*.spot --out all.spot", "one run of the records of all nodes" },
	{ "merge a b c d --name ddp && spotter report ddp", "by their names or ids" },
	{ "why all.spot", "who is the straggler, and why" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("out", 'o', OPT_STRING, "FILE", struct merge_options, out,
	    "write the merged run to FILE instead of the folder of runs"),
	OPT("name", 'n', OPT_STRING, "NAME", struct merge_options, name,
	    "call it NAME; default: as the record of the lowest rank"),
	OPT("force", 'f', OPT_FLAG, NULL, struct merge_options, force,
	    "merge also what does not look like one run: a rank twice, records of different times"),
	OPT("quiet", 'q', OPT_FLAG, NULL, struct merge_options, quiet,
	    "no line of progress on a terminal"),
	JSON_OPT,
	COMMON_OPTS,
	OPT_END,
};

const struct command merge_command = {
	.name = "merge",
	.group = "data",
	.summary = "one run of the records of many machines",
	.words = "RUN RUN...",
	.description =
	    "A training on several machines has a record on each. This makes one run of them: all "
	    "processes, GPUs, steps and stacks, with the machine each was on, so that 'why', "
	    "'report', 'sql' and the others speak of all ranks: which is late, and by what.\n"
	    "\n"
	    "Clocks of machines differ: where the records have steps of the same numbers, the "
	    "middle "
	    "of the differences between their ends is taken for the difference of the clocks, and "
	    "said; else the wall clocks are believed. Durations stay as they were.\n"
	    "\n"
	    "A rank that two records have, or records of different times, are refused unless "
	    "--force. Ranks that no record has are said. The records themselves stay as they are.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct merge_options),
	.min_words = 2,
	.max_words = -1,
	.run = run_merge,
};

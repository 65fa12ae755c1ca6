/* SPDX-License-Identifier: MIT */
#include "cli/recording.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/nvml.h"
#include "engine/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	LEVEL = 1,          /* /proc only */
	VERDICT_LINES = 11, /* and one for where the record is */
};

int recording_prepare(struct recording *rec, char *const *argv, struct err *e)
{
	struct run_info *run = &rec->run;
	struct host host;
	int error;

	error = host_open(&host, NULL, e);
	if (error < 0)
		return error;
	machine_read(&host, &run->machine);
	host_close(&host);
	text_copy(run->version, sizeof(run->version), SPOTTER_VERSION);
	run->started_wall_ns = clock_wall_ns();
	run->started_mono_ns = clock_mono_ns();
	run->hz = rec->options.hz;
	run->level = LEVEL;
	run->state = RUN_GOING;
	run->rusage_cpu_ns = run->rusage_maxrss_bytes = -1;
	run->cwd = getcwd(NULL, 0); /* NULL in a deleted folder: unknown */
	store_new_id(run->started_wall_ns, run->id, sizeof(run->id));
	if (rec->options.name && rec->options.name[0])
		text_safe_copy(run->name, sizeof(run->name), rec->options.name);
	else
		store_name_from(argv, run->name, sizeof(run->name));
	error = run_info_set_argv(run, argv);
	if (error < 0)
		return err_set(e, error, "out of memory");
	return store_place(run->id, rec->options.out, &rec->place, e);
}

/* Descriptors are kept on what is watched (three a process, two a thread): the soft limit is for
 * programs that use select(), which this one does not. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

void recording_start(struct recording *rec, struct job_spec job, pid_t supervisor)
{
	struct recorder_options o = {
		.run = &rec->run,
		.place = &rec->place,
		.record = { .max_bytes = rec->options.max_size },
		.job = job,
		.hz = rec->options.hz,
		.budget = rec->options.budget,
		.stacks_hz = rec->options.stacks,
		.nvml = nvml_path(rec->options.nvml),
		.marks = rec->marks,
		.supervisor = supervisor,
		.glances = rec->options.glances,
	};

	raise_descriptor_limit();
	rec->run.pid = job.root;
	if (recorder_start(&o, &rec->recorder, &rec->problem) < 0)
		rec->recorder = NULL;
}

/* Names of files come from outside: nothing in them may reach the terminal as it is. */
static void say_safe(struct buf *words, const char *before, const char *text, const char *after)
{
	buf_str(words, before);
	text_safe(words, text, strlen(text));
	buf_str(words, after);
}

/* False when there is no record. */
static bool say_end(const struct recording *rec, const struct recorder_end *end, struct buf *words)
{
	char size[32], why[80];
	bool elsewhere;

	if (end->problem[0])
		say_safe(words, "spotter: ", end->problem, "\n");
	if (end->health.lost_ticks)
		buf_printf(words,
			   "spotter: %llu samples are missing: the disk did not take them (%s)\n",
			   (unsigned long long)end->health.lost_ticks,
			   end->health.error ? err_name(end->health.error, why, sizeof(why))
					     : "it does again");
	if (end->health.lost_slices)
		buf_printf(
		    words,
		    "spotter: %llu seconds of stacks are missing: the disk did not take them\n",
		    (unsigned long long)end->health.lost_slices);
	if (rec->place.remark[0])
		say_safe(words, "spotter: ", rec->place.remark, "\n");
	if (!end->path[0])
		return false;
	if (access(end->path, F_OK) < 0) {
		say_safe(words, "spotter: the record ", end->path,
			 " was deleted while it was written\n");
		return false;
	}
	if (rec->options.quiet)
		return true;
	/* `last` finds it only where runs are kept. */
	elsewhere = rec->options.out || rec->place.remark[0];
	say_safe(words, "Record  ", end->path, "");
	buf_printf(words, " (%s); more: spotter report",
		   num_bytes((double)end->health.bytes, size, sizeof(size)));
	say_safe(words, elsewhere ? " " : "", elsewhere ? end->path : "", "\n");
	return true;
}

bool recording_stop(struct recording *rec, struct buf *words)
{
	struct render_style style = { .color = rec->color,
				      .max_lines = VERDICT_LINES,
				      .width = rec->width };
	struct recorder_end end = { 0 };

	if (!rec->recorder) {
		say_safe(words, "spotter: nothing was recorded: ", rec->problem.text, "\n");
		return false;
	}
	recorder_stop(rec->recorder, &rec->run, &style, rec->options.quiet ? NULL : words, &end);
	rec->recorder = NULL;
	return say_end(rec, &end, words);
}

void recording_done(struct recording *rec)
{
	run_info_done(&rec->run);
}

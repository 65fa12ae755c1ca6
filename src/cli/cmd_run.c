/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/clock.h"
#include "base/err.h"
#include "cli/hooks.h"
#include "cli/nvml.h"
#include "cli/recording.h"
#include "cli/run_push.h"
#include "cli/title.h"
#include "engine/mark_folder.h"
#include "launch/launch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	EXIT_OWN_FAILURE = 125, /* the convention of env, timeout and nohup */
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
	PATIENCE_S = 3, /* for the verdict, after the program's end */
	PUSH_S = 2,     /* and for what is to be pushed, beyond what --push-flush allows it */
	TITLE_S = 1,    /* between two titles */
};

struct run_options {
	struct common_options common;
	struct recording_options recording;
	bool wait, hooks, status;
	struct pushing_options pushing;
};

/* The recorder's side, in R. */
struct run_job {
	struct recording recording;
	pid_t supervisor;
	char terminal[64]; /* whose title is set; "" none */
	struct pushing_options pushing;
};

static void look_once_more(struct launch_run *run, void *arg)
{
	struct run_job *job = arg;

	(void)run;
	if (job->recording.recorder)
		recorder_look(job->recording.recorder);
}

static void note_end(struct run_info *run, const struct launch_end *end)
{
	const struct rusage *u = &end->usage;

	run->ended_mono_ns = clock_mono_ns();
	run->state = RUN_ENDED;
	run->has_exit = true;
	run->exit_code = WIFEXITED(end->status) ? WEXITSTATUS(end->status) : -1;
	run->exit_signal = WIFSIGNALED(end->status) ? WTERMSIG(end->status) : 0;
	run->rusage_cpu_ns = (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * NS_PER_S +
			     (u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1000ll;
	run->rusage_maxrss_bytes = u->ru_maxrss * 1024ll;
}

/* Waits for the program's end, with a new title each second where one is wanted. */
static void await_end(struct launch_run *run, struct run_job *job, struct launch_end *end)
{
	const struct run_info *info = &job->recording.run;
	struct recorder *recorder = job->recording.recorder;
	struct glance before = { 0 }, now = { 0 };
	struct title title = { .fd = -1 };
	char text[TITLE_MAX];

	if (job->terminal[0] && recorder)
		title_open(&title, job->terminal);
	while (!launch_wait(run, title.fd < 0 ? -1 : TITLE_S * NS_PER_S, end)) {
		if (title.fd < 0)
			continue;
		before = now;
		recorder_glance(recorder, &now);
		title_text(info->name, clock_mono_ns() - info->started_mono_ns, &before, &now, text,
			   sizeof(text));
		title_set(&title, text);
	}
	title_close(&title);
}

static void record_program(struct launch_run *run, void *arg)
{
	struct run_job *job = arg;
	struct launch_end end;
	struct run_push *push;
	struct err unpushed = { 0 };
	struct buf words;

	buf_init(&words, 1 << 16);
	recording_start(&job->recording,
			(struct job_spec){ .root = launch_pid(run), .reaper = getpid() },
			job->supervisor);
	push = run_push_start(&job->pushing, &job->recording, &unpushed);
	await_end(run, job, &end);
	run_push_hold(push);
	note_end(&job->recording.run, &end);
	recording_stop(&job->recording, &words);
	run_push_stop(push, &job->recording, job->pushing.flush_ns, &words);
	if (unpushed.code)
		buf_printf(&words, "spotter: nothing was pushed: %s\n", unpushed.text);
	launch_say(run, buf_text(&words), words.len);
	buf_done(&words);
}

/* Ranks of one job print one verdict, not eight. */
static bool is_later_rank(void)
{
	static const char *const names[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					     "PMI_RANK" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *rank = getenv(names[i]);

		if (rank && *rank)
			return strcmp(rank, "0") != 0;
	}
	return false;
}

static int exit_code_of(int error)
{
	switch (error) {
	case -ENOENT:
		return EXIT_NOT_FOUND;
	case -EACCES:
	case -ENOEXEC:
	case -EISDIR:
		return EXIT_NOT_EXECUTABLE;
	default:
		return EXIT_OWN_FAILURE;
	}
}

/* What became of the recorder, when it is not all well: the program did not notice. */
static void say_recorder(const struct cli *cli, int end, const char *path)
{
	if (end == -ETIMEDOUT)
		cli_say(cli,
			"spotter: the record is still being written; see it with: spotter why");
	else if (end)
		cli_say(
		    cli,
		    "spotter: the recorder ended early (%s %d); what it saw until then is in %s",
		    WIFSIGNALED(end) ? "signal" : "status",
		    WIFSIGNALED(end) ? WTERMSIG(end) : WEXITSTATUS(end), path);
}

static void hook(struct hooks *h, struct run_job *job, struct launch *l)
{
	hooks_prepare(h, NULL, job->recording.run.id);
	job->recording.marks = h->folder[0] ? h->folder : NULL;
	l->env = h->env;
}

/* The recorder removes the folder, unless there is none any more. */
static void unhook(struct hooks *h, bool recorder_lives)
{
	if (h->folder[0] && !recorder_lives)
		mark_folder_remove(h->folder);
	hooks_done(h);
}

static int run_run(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct run_options *o = options;
	struct run_job job = { .supervisor = getpid() };
	struct launch l = { .argv = rest->v,
			    .wait_orphans = o->wait,
			    .record = record_program,
			    .ended = look_once_more,
			    .arg = &job,
			    .patience_ns = PATIENCE_S * NS_PER_S };
	struct hooks hooks = { 0 };
	struct err e = { 0 };
	int status, recorder = 0, error;

	l.ret_recorder = &recorder;
	job.recording.options = o->recording;
	job.recording.options.quiet |= is_later_rank();
	if (o->status && !is_later_rank())
		job.recording.options.glances =
		    title_terminal(STDERR_FILENO, job.terminal, sizeof(job.terminal));
	job.pushing = o->pushing;
	if (pushing_wanted(&o->pushing))
		l.patience_ns += PUSH_S * NS_PER_S + o->pushing.flush_ns;
	job.recording.color = cli->color_err;
	job.recording.width = cli_columns(STDERR_FILENO);
	if (pushing_check(&o->pushing, &e) < 0 ||
	    recording_prepare(&job.recording, rest->v, &e) < 0) {
		cli_fail(cli, &e);
		return EXIT_OWN_FAILURE;
	}
	if (o->hooks)
		hook(&hooks, &job, &l);
	error = launch(&l, &status, &e);
	unhook(&hooks, !error && recorder == -ETIMEDOUT);
	if (error < 0) {
		recording_done(&job.recording);
		cli_fail(cli, &e);
		return exit_code_of(error);
	}
	if (recorder && recorder != -ETIMEDOUT && job.recording.options.glances)
		title_restore(job.terminal); /* it died, and could not */
	say_recorder(cli, recorder, job.recording.place.path);
	recording_done(&job.recording);
	launch_exit(status);
}

static const struct example examples[] = {
	{ "run -- python train.py", "run and record; a verdict at the end" },
	{ "run --name lr-1e-3 --out lr.spot -- python train.py --lr 1e-3",
	  "into a file of your own, under a name" },
	{ "run -- make -j8", "any program will do" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("name", 'n', OPT_STRING, "NAME", struct run_options, recording.name,
	    "call the run NAME; default: after the program"),
	OPT("hz", 0, OPT_NUMBER, "N", struct run_options, recording.hz,
	    "samples a second; fewer when over budget (default 10)", .min = 0.1, .max = 100),
	OPT("stacks", 0, OPT_NUMBER, "N", struct run_options, recording.stacks,
	    "looks at what every thread is doing, a second; fewer when over budget; 0: none "
	    "(default "
	    "50)",
	    .min = 0, .max = 1000),
	OPT("out", 'o', OPT_STRING, "FILE", struct run_options, recording.out,
	    "write the record to FILE instead of the folder of runs"),
	OPT("budget", 0, OPT_RATIO, "SHARE", struct run_options, recording.budget,
	    "CPU Spotter may use, as a share of one core (default 1%)", .min = 0.0001, .max = 1),
	OPT("max-size", 0, OPT_SIZE, "SIZE", struct run_options, recording.max_size,
	    "keep the record under SIZE by thinning what is old (default 256M)", .min = 1 << 20,
	    .max = 1e13),
	OPT("no-hooks", 0, OPT_UNFLAG, NULL, struct run_options, hooks,
	    "leave the program's environment byte for byte as it is"),
	OPT("wait", 0, OPT_FLAG, NULL, struct run_options, wait,
	    "go on until the last process the program left behind has ended"),
	OPT("status", 0, OPT_FLAG, NULL, struct run_options, status,
	    "say in the title of the terminal's window how far the program is: step, time a step, "
	    "loss, CPU; nothing is drawn in the window"),
	OPT("push", 0, OPT_STRING, "URL", struct run_options, pushing.url,
	    "send what becomes of the run to an engine while it goes on: .../api/v1/write for "
	    "remote_write, .../v1/metrics for OTLP"),
	OPT("push-as", 0, OPT_STRING, "KIND", struct run_options, pushing.as,
	    "what the address takes, where its end does not tell: remote-write or otlp",
	    .choices = "remote-write|otlp"),
	OPT("push-flush", 0, OPT_DURATION, "TIME", struct run_options, pushing.flush_ns,
	    "at the end wait at most so long for what is still to be sent (default 1.5s)", .min = 0,
	    .max = 3600),
	PUSHING_OPTS(struct run_options, pushing, "5s"),
	NVML_OPT(struct run_options, recording.nvml),
	OPT("quiet", 'q', OPT_FLAG, NULL, struct run_options, recording.quiet,
	    "no verdict at the end"),
	COMMON_OPTS,
	OPT_END,
};

static const struct run_options defaults = { .recording = RECORDING_DEFAULTS,
					     .hooks = true,
					     .pushing = { .flush_ns = 3 * NS_PER_S / 2 } };

const struct command run_command = {
	.name = "run",
	.group = "record",
	.summary = "run a program, record it, say what it used and why it is slow",
	.words = "[--] CMD [ARG...]",
	.description =
	    "Starts CMD and records the whole tree of processes it starts. The program is not "
	    "touched: its input, output, terminal, signals and exit status are as without Spotter; "
	    "its environment gets what it takes to hear of its steps (PYTHONPATH, SPOTTER_*), "
	    "or nothing with --no-hooks. At its end a verdict of at most 12 lines goes to standard "
	    "error "
	    "(ranks above 0 of a distributed job are quiet).\n"
	    "\n"
	    "Ends as the program ended: the same exit status, or the same signal. 125: Spotter "
	    "itself failed before the program was started, 126: CMD cannot be executed, 127: CMD "
	    "was not found.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct run_options),
	.defaults = &defaults,
	.min_words = 1,
	.max_words = -1,
	.stop_at_word = true,
	.run = run_run,
};

/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "base/scan.h"
#include "base/text.h"
#include "cli/nvml.h"
#include "cli/recording.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct attach_options {
	struct common_options common;
	struct recording_options recording;
	int64_t duration_ns; /* 0: until it ends or Ctrl-C */
	const char *marks;   /* folder of rings, NULL: none */
};

/* Not a thread of one, and not ended. One that cannot be looked at may be one. */
static bool is_process(pid_t pid, struct err *e)
{
	char path[32], text[4096];
	struct scan state;
	uint64_t tgid;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	n = io_read(-1, path, text, sizeof(text));
	if (n <= 0)
		return true;
	if (scan_key_u64(scan_of(text, (size_t)n), "Tgid", &tgid) && tgid != (uint64_t)pid) {
		err_set(e, -EINVAL, "%d is a thread of process %llu", pid,
			(unsigned long long)tgid);
		err_hint(e, "spotter attach %llu", (unsigned long long)tgid);
		return false;
	}
	if (scan_key(scan_of(text, (size_t)n), "State", &state)) {
		scan_blank(&state);
		if (scan_lit(&state, "Z")) {
			err_set(e, -ESRCH,
				"process %d has ended (its parent has not waited for it)", pid);
			return false;
		}
	}
	return true;
}

static int open_pid(const char *word, pid_t *ret_pid, struct err *e)
{
	int64_t pid;
	int fd;

	if (!num_parse_i64(word, &pid) || pid <= 0 || pid > INT32_MAX)
		return err_set(e, -EINVAL, "'%s' is not a process id", word);
	if (pid == getpid())
		return err_set(e, -EINVAL, "'%s' is Spotter itself", word);
	fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (!is_process((pid_t)pid, e)) {
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	if (fd < 0) {
		err_set(e, -errno, "there is no process %s", word);
		err_hint(e, "see what runs: spotter top");
		return -ESRCH;
	}
	*ret_pid = (pid_t)pid;
	return fd;
}

/* Rings are read, and removed with their folder at the end: it has to be ours alone, as libspotter asks of it,
 * too. */
static int check_marks(const char *path, struct err *e)
{
	struct stat st;

	if (lstat(path, &st) < 0) {
		int error = -errno;

		return err_set(e, error, "there is no folder '%s' for marks", path);
	}
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 0777) == 0700)
		return 0;
	err_set(e, -EINVAL, "'%s' cannot be the folder for marks: it must be a folder of yours",
		path);
	err_hint(e, "one that nobody else can enter: mktemp -d -p /dev/shm spotter-XXXXXX");
	return -EINVAL;
}

/* "spotter: recording train.py (4242) into /home/me/.local/state/spotter/runs/x.spot until ..."; the Python
 * package reads the path out of it. */
static void say_begin(const struct cli *cli, const struct recording *rec, bool limited)
{
	struct buf path;

	buf_init(&path, 4096);
	text_safe(&path, rec->place.path, strlen(rec->place.path));
	cli_say(cli, "spotter: recording %s (%d) into %s%s", rec->run.name, (int)rec->run.pid,
		buf_text(&path), limited ? "" : " until it ends or Ctrl-C; it is left running");
	buf_done(&path);
}

/* The arguments of a process, as a vector that points into *text. */
static int read_argv(pid_t pid, char **text, char ***ret)
{
	char path[32];
	size_t n = 0, words = 0;
	int error;
	char **argv;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	*text = io_slurp(-1, path, 1 << 20, &n, &error);
	if (!*text || !n) {
		free(*text);
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		*text = io_slurp(-1, path, 4096, &n, &error);
		if (!*text)
			return error;
		(*text)[strcspn(*text, "\n")] = '\0';
		n = strlen(*text);
	}
	for (size_t i = 0; i < n; i++)
		words += (*text)[i] == '\0';
	argv = calloc(words + 2, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	words = 0;
	for (size_t i = 0; i < n; i += strlen(*text + i) + 1)
		argv[words++] = *text + i;
	*ret = argv;
	return 0;
}

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Until the process ended (true), the time is over, or the user has seen enough. */
static bool wait_for(int pidfd, int signals, int64_t duration_ns)
{
	struct pollfd fds[] = { { .fd = pidfd, .events = POLLIN },
				{ .fd = signals, .events = POLLIN } };
	int64_t end = clock_mono_ns() + duration_ns;

	for (;;) {
		int64_t left = end - clock_mono_ns();
		int ms = !duration_ns ? -1 : left > 0 ? (int)(left / NS_PER_MS % 3600000) + 1 : 0;

		if (duration_ns && left <= 0)
			return false;
		if (poll(fds, 2, ms) < 0 && errno != EINTR)
			return false;
		if (fds[0].revents)
			return true;
		if (fds[1].revents)
			return false;
	}
}

static bool finish(struct recording *rec, bool ended)
{
	struct buf words;
	bool recorded;

	if (rec->recorder)
		recorder_look(rec->recorder);
	rec->run.ended_mono_ns = clock_mono_ns();
	rec->run.state = ended ? RUN_ENDED : RUN_DETACHED;
	buf_init(&words, 1 << 16);
	recorded = recording_stop(rec, &words);
	(void)io_write_all(STDERR_FILENO, buf_text(&words), words.len);
	buf_done(&words);
	return recorded;
}

static int run_attach(struct cli *cli, void *options, const struct opt_rest *rest)
{
	const struct attach_options *o = options;
	auto_close int pidfd = -1;
	auto_close int signals = -1;
	auto_free char *text = NULL;
	auto_free char **argv = NULL;
	struct recording rec = { .options = o->recording };
	struct err e = { 0 };
	pid_t pid = 0;
	bool failed;

	pidfd = open_pid(rest->v[0], &pid, &e);
	if (pidfd < 0)
		return cli_fail(cli, &e);
	if (read_argv(pid, &text, &argv) < 0) {
		err_set(&e, -EACCES, "cannot read process %d", pid);
		return cli_fail(cli, &e);
	}
	rec.color = cli->color_err;
	rec.width = cli_columns(STDERR_FILENO);
	rec.run.attached = true;
	rec.marks = o->marks;
	if ((o->marks && check_marks(o->marks, &e) < 0) || recording_prepare(&rec, argv, &e) < 0) {
		recording_done(&rec);
		return cli_fail(cli, &e);
	}
	signals = block_signals();
	recording_start(&rec, (struct job_spec){ .root = pid }, 0);
	failed = !rec.recorder;
	if (!failed && !o->recording.quiet)
		say_begin(cli, &rec, o->duration_ns != 0);
	failed |= !finish(&rec, !failed && wait_for(pidfd, signals, o->duration_ns));
	recording_done(&rec);
	return failed ? EXIT_FAILED : EXIT_OK;
}

static const struct example examples[] = {
	{ "attach 12345 --for 60s", "record a minute of something already running" },
	{ "attach \"$(pgrep -f ipykernel)\"", "a notebook kernel, until Ctrl-C" },
	{ NULL, NULL },
};

static const struct opt opts[] = {
	OPT("for", 0, OPT_DURATION, "TIME", struct attach_options, duration_ns,
	    "stop after TIME (60s, 5m); default: when it ends, or on Ctrl-C", .min = 0.1,
	    .max = 1e7),
	OPT("name", 'n', OPT_STRING, "NAME", struct attach_options, recording.name,
	    "call the run NAME; default: after the program"),
	OPT("hz", 0, OPT_NUMBER, "N", struct attach_options, recording.hz,
	    "samples a second; fewer when over budget (default 10)", .min = 0.1, .max = 100),
	OPT("stacks", 0, OPT_NUMBER, "N", struct attach_options, recording.stacks,
	    "looks at what every thread is doing, a second; fewer when over budget; 0: none "
	    "(default "
	    "50)",
	    .min = 0, .max = 1000),
	OPT("out", 'o', OPT_STRING, "FILE", struct attach_options, recording.out,
	    "write the record to FILE instead of the folder of runs"),
	OPT("budget", 0, OPT_RATIO, "SHARE", struct attach_options, recording.budget,
	    "CPU Spotter may use, as a share of one core (default 1%)", .min = 0.0001, .max = 1),
	OPT("max-size", 0, OPT_SIZE, "SIZE", struct attach_options, recording.max_size,
	    "keep the record under SIZE by thinning what is old (default 256M)", .min = 1 << 20,
	    .max = 1e13),
	OPT("marks", 0, OPT_STRING, "DIR", struct attach_options, marks,
	    "read the steps and phases that the process marks in DIR (its $SPOTTER_MARKS, mode "
	    "0700), and remove DIR at the end"),
	NVML_OPT(struct attach_options, recording.nvml),
	OPT("quiet", 'q', OPT_FLAG, NULL, struct attach_options, recording.quiet,
	    "no verdict at the end"),
	COMMON_OPTS,
	OPT_END,
};

static const struct attach_options defaults = { .recording = RECORDING_DEFAULTS };

const struct command attach_command = {
	.name = "attach",
	.group = "record",
	.summary = "record something that is already running, and leave it running",
	.words = "PID",
	.description =
	    "Records process PID and all its descendants from now on: a notebook kernel, a job, a "
	    "server. The process is only looked at, never stopped. CPU time, memory and faults can "
	    "be read of anybody's processes; disk figures and shared memory only of your own.",
	.examples = examples,
	.opts = opts,
	.options_size = sizeof(struct attach_options),
	.defaults = &defaults,
	.min_words = 1,
	.max_words = 1,
	.run = run_attach,
};

/* SPDX-License-Identifier: MIT */
#include "cli/judge.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/nvml.h"
#include "cli/progress.h"
#include "record/reader.h"
#include "record/store.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

enum { LOOK_HZ = 10, LOOK_STACKS_HZ = 100 };

static int narrow(struct window *w, struct judge_part part, struct err *e)
{
	char has[32], wants[32];
	int64_t begin = w->from_ns, length = w->to_ns - w->from_ns;

	if (part.to_ns && part.to_ns <= part.from_ns)
		return err_set(e, -EINVAL, "--to must be later than --from");
	if (part.from_ns && part.from_ns >= length) {
		err_set(e, -EINVAL, "there is nothing from %s on: the run has %s",
			num_seconds((double)part.from_ns / 1e9, wants, sizeof(wants)),
			num_seconds((double)length / 1e9, has, sizeof(has)));
		return e->code;
	}
	w->from_ns = begin + part.from_ns;
	if (part.to_ns && part.to_ns < length)
		w->to_ns = begin + part.to_ns;
	return 0;
}

void judge_say_remark(const struct cli *cli, const char *path, struct record *r)
{
	const char *remark = record_remark(r);

	if (remark[0])
		cli_say(cli, "spotter: '%s': %s", path, remark);
}

int judge_open(const struct cli *cli, const char *path, struct record **ret, struct err *e)
{
	int r = record_open(path, ret, e);

	if (r == 0)
		judge_say_remark(cli, path, *ret);
	return r;
}

static void pulse(void *progress)
{
	progress_pulse(progress);
}

static int explain_record(const struct cli *cli, struct judged *j)
{
	struct progress progress;
	int r;

	progress_begin(&progress, "reading", cli->quiet);
	record_on_read(j->record, pulse, &progress);
	r = explain(&j->window, &j->verdict);
	record_on_read(j->record, NULL, NULL);
	progress_end(&progress);
	return r;
}

static int judge_record(struct cli *cli, const char *path, struct judge_part part, struct judged *j,
			struct err *e)
{
	char why[80];
	bool mixed;
	int r = judge_open(cli, path, &j->record, e);

	if (r < 0)
		return r;
	if (record_run(j->record)->state == RUN_GOING)
		cli_say(cli,
			"spotter: this run is still going; the verdict is about what it did so "
			"far");
	j->window = record_window(j->record, 0, 0);
	r = narrow(&j->window, part, e);
	if (r < 0)
		return r;
	mixed = record_is_mixed(j->record); /* which was said */
	r = explain_record(cli, j);
	if (!mixed && record_is_mixed(j->record))
		judge_say_remark(cli, path, j->record);
	return r < 0 ? err_set(e, r, "cannot explain '%s': %s", path, err_name(r, why, sizeof(why)))
		     : 0;
}

/* Ticks until the time is over, the process has ended, or the user has seen enough. The window goes
 * from tick to tick, so the first one starts the time. */
static int look(struct live *l, int64_t duration_ns, bool *ret_ended)
{
	int64_t start = 0, next = 0;

	for (unsigned ticks = 0;; ticks++) {
		int r = live_tick(l);

		*ret_ended = r == -ESRCH;
		if (r < 0)
			return *ret_ended && ticks > 1 ? 0 : r;
		if (!ticks)
			start = next = l->frame.mono_ns;
		if (l->frame.mono_ns - start >= duration_ns)
			return 0;
		next += NS_PER_S / LOOK_HZ;
		if (!live_wait(next < start + duration_ns ? next : start + duration_ns))
			return ticks ? 0 : -EINTR;
	}
}

static int judge_process(struct cli *cli, pid_t pid, int64_t duration_ns, struct judged *j,
			 struct err *e)
{
	struct live_options o = { .pid = pid,
				  .nvml = nvml_path(NULL),
				  .hz = LOOK_HZ,
				  .stacks_hz = LOOK_STACKS_HZ,
				  .points = (unsigned)(duration_ns / (NS_PER_S / LOOK_HZ)) + 8 };
	char shown[32], why[80];
	bool ended = false;
	int r;

	j->is_live = true;
	r = live_open(&j->live, &o, e);
	if (r < 0)
		return r;
	if (isatty(STDERR_FILENO))
		cli_say(cli, "spotter: looking at process %d for %s", pid,
			num_seconds((double)duration_ns / 1e9, shown, sizeof(shown)));
	r = look(&j->live, duration_ns, &ended);
	if (r == -ESRCH)
		return err_set(e, r, "process %d ended before it could be looked at", pid);
	if (r < 0)
		return err_set(e, r, "cannot look at process %d: %s", pid,
			       err_name(r, why, sizeof(why)));
	if (ended)
		cli_say(cli, "spotter: process %d ended meanwhile", pid);
	live_last(&j->live);
	j->window = live_window(&j->live, 0);
	r = explain(&j->window, &j->verdict);
	return r < 0 ? err_set(e, r, "cannot explain process %d: %s", pid,
			       err_name(r, why, sizeof(why)))
		     : 0;
}

int judge(struct cli *cli, const char *word, int64_t duration_ns, struct judged *ret, struct err *e)
{
	return judge_part(cli, word, duration_ns, (struct judge_part){ 0 }, ret, e);
}

int judge_part(struct cli *cli, const char *word, int64_t duration_ns, struct judge_part part,
	       struct judged *ret, struct err *e)
{
	char path[PATH_MAX];
	struct err not_found = { 0 };
	int64_t pid = 0;

	*ret = (struct judged){ .live = { .host = { .root = -1, .base = -1 } } };
	if (store_find(word, path, sizeof(path), &not_found) == 0)
		return judge_record(cli, path, part, ret, e);
	if (!word || !num_parse_i64(word, &pid) || pid <= 0 || pid > INT_MAX) {
		*e = not_found;
		return e->code;
	}
	if (part.from_ns || part.to_ns)
		return err_set(e, -EINVAL,
			       "--from and --to are for runs; '%s' is a process that "
			       "runs now: --for says how long to look at it",
			       word);
	if (judge_process(cli, (pid_t)pid, duration_ns, ret, e) == 0)
		return 0;
	if (e->code == -ESRCH && !ret->live.sampler) {
		*e = (struct err){ 0 };
		err_set(e, -ESRCH, "there is neither a run nor a process '%s'", word);
		err_hint(e, "'spotter runs' lists runs, 'spotter top --once' processes");
	}
	return e->code;
}

void judged_done(struct judged *j)
{
	verdict_done(&j->verdict);
	if (j->record)
		record_close(j->record);
	if (j->is_live)
		live_close(&j->live);
}

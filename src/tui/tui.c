/* SPDX-License-Identifier: MIT */
#include "tui/tui.h"

#include "base/clock.h"
#include "base/err.h"
#include "tui/term.h"
#include "tui/view.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The first figures need two looks: the second comes soon, the others at their pace. A verdict costs some
 * milliseconds to a second: it is asked for rarely, and the more it costs the more rarely. */
static const int64_t soon_ns = 300 * NS_PER_MS, play_every_ns = 150 * NS_PER_MS;
static const int64_t judge_first_ns = 3 * NS_PER_S, judge_every_ns = 5 * NS_PER_S;
static const int64_t judge_live_ns = 120 * NS_PER_S, judge_record_ns = 600 * NS_PER_S;
/* Recorders read some sources only once a second. */
static const int64_t record_interval_ns = 2 * NS_PER_S;
enum { JUDGE_PART = 20 }; /* of the time, at most one part in so many */

struct tui {
	struct term *term;
	struct canvas canvas;
	int signals;
	sigset_t before;
};

/* One look at one source. */
struct watch {
	struct tui *t;
	struct tui_source *s;
	struct board *b;
	struct ui ui;
	struct board_when when;
	int64_t next_tick_ns, next_judge_ns, next_play_ns;
	bool stop, fresh; /* fresh: something new came since the board was taken */
};

int tui_open(const struct tui_options *o, struct tui **ret, struct err *e)
{
	static const int numbers[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT
	};
	struct term_options to = { .color = o->color, .ascii = o->ascii };
	struct tui *t = calloc(1, sizeof(*t));
	sigset_t set;
	int r;

	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, &t->before);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r = t->signals < 0 ? err_set(e, -errno, "cannot read signals")
			   : term_open(&to, &t->term, e);
	if (r < 0) {
		tui_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

void tui_close(struct tui *t)
{
	if (!t)
		return;
	term_close(t->term);
	canvas_done(&t->canvas);
	if (t->signals >= 0)
		close(t->signals);
	sigprocmask(SIG_SETMASK, &t->before, NULL);
	free(t);
}

static int draw(struct watch *w)
{
	struct tui *t = w->t;
	int rows, cols, r;

	term_size(t->term, &rows, &cols);
	if (rows != t->canvas.rows || cols != t->canvas.cols) {
		r = canvas_size(&t->canvas, rows, cols);
		if (r < 0)
			return r;
	}
	term_prepare(t->term, &t->canvas);
	if (w->ui.redraw)
		term_forget(t->term);
	w->ui.redraw = false;
	board_why(w->b, (unsigned)cols - 2);
	screen_draw(w->b, &w->ui, &t->canvas);
	return term_show(t->term, &t->canvas);
}

/* The board for the moment the user looks at. */
static int look(struct watch *w)
{
	struct window all = w->s->window(w->s);
	struct board_when when;
	int r;

	ui_when(&w->ui, all.from_ns, all.to_ns, &when);
	when.same_lines =
	    !w->fresh && when.right_ns == w->when.right_ns && when.step_ns == w->when.step_ns;
	w->b->live = w->s->live;
	w->b->ended = w->s->ended;
	r = board_take(w->b, &all, &when);
	w->when = when;
	w->fresh = false;
	return r;
}

/* Does it say more than that it was too short? */
static bool is_settled(const struct board *b)
{
	return b->judged && (b->verdict.judged || b->verdict.findings.n);
}

static int judge(struct watch *w)
{
	int64_t now = clock_mono_ns(), took, pause = judge_every_ns;
	int64_t most = w->s->replay ? judge_record_ns : judge_live_ns;
	struct window all = w->s->window(w->s);
	int r;

	/* Of what goes on, what it does now; of what is over, all of it. */
	if (w->s->live && all.to_ns - all.from_ns > most)
		all.from_ns = all.to_ns - most;
	r = board_judge(w->b, &all);
	took = clock_mono_ns() - now;
	/* Whoever waits for the first word is not told to wait longer because the machine is busy. */
	if (took * JUDGE_PART > judge_every_ns && is_settled(w->b))
		pause = took * JUDGE_PART;
	w->next_judge_ns = w->s->live ? now + took + pause : INT64_MAX;
	return r == -ENOMEM ? r : 0;
}

/* At its very end nothing is left of a run: a moment before that. */
static void before_the_end(struct watch *w)
{
	struct window all = w->s->window(w->s);

	if (w->s->replay && !w->s->live && !w->ui.at_ns && all.to_ns - all.from_ns > 5 * NS_PER_S)
		w->ui.at_ns = all.to_ns - NS_PER_S;
}

static int tick(struct watch *w, int64_t now)
{
	int r = w->s->tick(w->s);

	w->next_tick_ns += w->s->every_ns;
	if (w->next_tick_ns < now) /* the machine slept, or we were stopped */
		w->next_tick_ns = now + w->s->every_ns;
	w->fresh = true;
	if (!w->s->live) { /* it has just ended: the last word about it */
		w->next_tick_ns = INT64_MAX;
		w->next_judge_ns = w->s->job ? now : INT64_MAX;
		before_the_end(w);
	}
	return r;
}

static void stop_for_a_while(struct watch *w)
{
	term_pause(w->t->term);
	raise(SIGSTOP);
	term_resume(w->t->term);
}

static void take_signals(struct watch *w)
{
	struct signalfd_siginfo info;

	while (read(w->t->signals, &info, sizeof(info)) == sizeof(info)) {
		switch (info.ssi_signo) {
		case SIGWINCH:
			term_resized(w->t->term);
			break;
		case SIGTSTP:
			stop_for_a_while(w);
			break;
		case SIGCONT: /* somebody stopped us from outside */
			term_resume(w->t->term);
			break;
		default:
			w->stop = true;
			break;
		}
	}
}

static void take_keys(struct watch *w)
{
	bool moved = false;
	uint32_t key;

	while (!w->ui.quit && !w->ui.leave && !w->ui.open_pid &&
	       (key = term_key(w->t->term)) != UI_NONE) {
		/* Keys that came at once: what is chosen is what the keys before it made of the list. */
		if (moved && (key == UI_ENTER || key == '\n') && !w->ui.typing)
			screen_draw(w->b, &w->ui, &w->t->canvas);
		moved |= ui_key(&w->ui, w->b, key);
	}
}

/* Until something happens. */
static void wait_for_it(struct watch *w)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = w->t->signals, .events = POLLIN } };
	int64_t next = w->next_tick_ns < w->next_judge_ns ? w->next_tick_ns : w->next_judge_ns;
	int64_t left;
	struct timespec ts;

	if (w->ui.playing && w->next_play_ns < next)
		next = w->next_play_ns;
	left = next - clock_mono_ns();
	ts = (struct timespec){ .tv_sec = left > 0 ? left / NS_PER_S : 0,
				.tv_nsec = left > 0 ? left % NS_PER_S : 0 };
	if (ppoll(fds, 2, next == INT64_MAX ? NULL : &ts, NULL) <= 0)
		return;
	if (fds[1].revents)
		take_signals(w);
	if (fds[0].revents & POLLIN)
		take_keys(w);
	if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		w->stop = true; /* the terminal is gone */
}

static int go_on(struct watch *w)
{
	int r = 0;

	while (r == 0 && !w->stop && !w->ui.quit && !w->ui.leave && !w->ui.open_pid) {
		int64_t now = clock_mono_ns();

		if (now >= w->next_tick_ns)
			r = tick(w, now);
		if (w->ui.playing && now >= w->next_play_ns) {
			ui_play(&w->ui, w->b);
			w->next_play_ns = now + play_every_ns;
		}
		/* What is judged is drawn first: a verdict may take a second. */
		if (r == 0)
			r = look(w);
		if (r == 0)
			r = draw(w);
		if (r == 0 && w->s->job && clock_mono_ns() >= w->next_judge_ns) {
			r = judge(w);
			continue;
		}
		if (r == 0)
			wait_for_it(w);
	}
	return r;
}

int tui_watch(struct tui *t, struct tui_source *s, struct tui_end *ret)
{
	struct watch w = { .t = t, .s = s, .fresh = true };
	int64_t now = clock_mono_ns();
	int r = 0;

	w.b = calloc(1, sizeof(*w.b));
	if (!w.b)
		return -ENOMEM;
	w.b->job = s->job;
	w.b->replay = s->replay;
	ui_init(&w.ui, s->every_ns);
	w.ui.tree = s->job;
	w.ui.can_open = s->can_open;
	w.ui.can_leave = s->can_leave;
	w.next_tick_ns = s->live ? now : INT64_MAX;
	w.next_judge_ns = !s->job ? INT64_MAX : s->replay ? now : now + judge_first_ns;
	if (s->live) {
		r = tick(&w, now);
		w.next_tick_ns = now + (s->every_ns < soon_ns ? s->every_ns : soon_ns);
	}
	if (r == 0 && s->replay) {
		struct window all = s->window(s);
		int rows, cols;

		/* The whole run, as far as two graphs side by side have room for it. */
		term_size(t->term, &rows, &cols);
		w.ui.graph_cols = cols >= 76 ? cols / (cols / 38) : cols;
		if (window_run(&all)->hz >= 1 && window_run(&all)->hz <= 10)
			w.ui.tick_ns = (int64_t)(NS_PER_S / window_run(&all)->hz);
		ui_zoom_to(&w.ui, all.to_ns - all.from_ns);
		w.ui.least_ns = record_interval_ns;
		before_the_end(&w);
	}
	if (r == 0)
		r = go_on(&w);
	*ret = (struct tui_end){ .open_pid = w.ui.open_pid, .leave = w.ui.leave };
	board_done(w.b);
	free(w.b);
	return r;
}

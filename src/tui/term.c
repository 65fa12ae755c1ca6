/* SPDX-License-Identifier: MIT */
#include "tui/term.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "tui/paint.h"
#include "tui/ui.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* What curses must not do: wait long to tell Escape from the start of another key (milliseconds). */
enum { ESCAPE_MS = 25 };

struct term {
	SCREEN *screen;
	WINDOW *keys; /* a pad: reading from it never draws */
	enum color_mode mode;
	bool ascii;
	struct canvas shown; /* what is on the terminal now */
	bool known;          /* ...if anything is */
	struct buf out;
};

/* What gives the terminal back, for a signal handler: it can be given no argument, so this is the one thing
 * of the program's that is global. Written before the handler is set, and only read by it. */
static struct {
	struct termios before;
	char bytes[256];
	size_t n;
	volatile sig_atomic_t armed;
} rescue;

static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP };

static void on_crash(int sig)
{
	if (rescue.armed) {
		rescue.armed = 0;
		if (write(STDOUT_FILENO, rescue.bytes, rescue.n) < 0) {
			/* there is nobody to tell */
		}
		tcsetattr(STDIN_FILENO, TCSANOW, &rescue.before);
	}
	/* SA_RESETHAND: now it ends the program as it would have. */
	raise(sig);
}

/* A capability without its padding ("$<5>"), which no terminal of today needs. */
static void keep_bytes(const char *capability)
{
	const char *s = tigetstr(capability);

	if (!s || s == (char *)-1)
		return;
	while (*s && rescue.n < sizeof(rescue.bytes)) {
		if (s[0] == '$' && s[1] == '<') {
			s += strcspn(s, ">");
			s += *s == '>';
			continue;
		}
		rescue.bytes[rescue.n++] = *s++;
	}
}

static void arm(void)
{
	struct sigaction act = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };

	rescue.n = 0;
	keep_bytes("sgr0");
	keep_bytes("rmkx");
	keep_bytes("cnorm");
	keep_bytes("rmcup");
	rescue.armed = 1;
	for (size_t i = 0; i < ARRAY_LEN(crashes); i++)
		sigaction(crashes[i], &act, NULL);
}

static void disarm(void)
{
	rescue.armed = 0;
	for (size_t i = 0; i < ARRAY_LEN(crashes); i++)
		signal(crashes[i], SIG_DFL);
}

/* A locale that is asked for and not installed, as in most containers, still says what the terminal
 * understands. */
static bool is_utf8(void)
{
	const char *all = getenv("LC_ALL"), *type = getenv("LC_CTYPE"), *lang = getenv("LANG");
	const char *asked = all && *all ? all : type && *type ? type : lang ? lang : "";

	if (!setlocale(LC_CTYPE, "") && (strcasestr(asked, "utf-8") || strcasestr(asked, "utf8")))
		setlocale(LC_CTYPE, "C.UTF-8");
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* paint.c moves the cursor as ECMA-48 says; a terminal that wants it otherwise is from another time. */
static bool speaks_ecma48(void)
{
	const char *move = tigetstr("cup");

	return move && move != (char *)-1 && strncmp(move, "\033[%i%p1%d;%p2%dH", 16) == 0;
}

static void begin(struct term *t)
{
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(t->keys, TRUE);
	nodelay(t->keys, TRUE);
	refresh(); /* its only picture: an empty one */
}

int term_open(const struct term_options *o, struct term **ret, struct err *e)
{
	const char *type = getenv("TERM");
	struct term *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->ascii = !is_utf8() || o->ascii;
	if (tcgetattr(STDIN_FILENO, &rescue.before) < 0) {
		free(t);
		return err_set(e, -ENOTTY, "standard input is not a terminal");
	}
	set_escdelay(ESCAPE_MS);
	t->screen = newterm(NULL, stdout, stdin); /* which changes the terminal's modes at once */
	if (!t->screen || !speaks_ecma48() || !(t->keys = newpad(1, 1))) {
		bool dull = t->screen != NULL;

		term_close(t);
		tcsetattr(STDIN_FILENO, TCSADRAIN, &rescue.before);
		err_set(e, -ENOTSUP,
			dull ? "the terminal '%s' cannot move its cursor as spotter wants"
			     : "nothing is known about a terminal '%s' (TERM)",
			type ? type : "");
		err_hint(e, "a line an interval instead: spotter top --plain");
		return -ENOTSUP;
	}
	t->mode = palette_mode(o->color, getenv("COLORTERM"), tigetnum("colors"));
	arm();
	begin(t);
	*ret = t;
	return 0;
}

void term_close(struct term *t)
{
	if (!t)
		return;
	if (t->screen)
		endwin();
	if (t->keys) {
		disarm();
		delwin(t->keys);
	}
	if (t->screen)
		delscreen(t->screen);
	canvas_done(&t->shown);
	buf_done(&t->out);
	free(t);
}

void term_size(const struct term *t, int *ret_rows, int *ret_cols)
{
	struct winsize w = { 0 };

	(void)t;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_row || !w.ws_col) {
		w.ws_row = 24;
		w.ws_col = 80;
	}
	*ret_rows = w.ws_row;
	*ret_cols = w.ws_col;
}

void term_prepare(const struct term *t, struct canvas *c)
{
	c->ascii = t->ascii;
	c->mono = t->mode == COLOR_NONE;
}

int term_show(struct term *t, const struct canvas *c)
{
	buf_reset(&t->out);
	paint(t->known ? &t->shown : NULL, c, t->mode, &t->out);
	if (!buf_ok(&t->out))
		return -ENOMEM;
	t->known = canvas_copy(&t->shown, c) == 0;
	return t->out.len ? io_write_all(STDOUT_FILENO, t->out.data, t->out.len) : 0;
}

void term_forget(struct term *t)
{
	t->known = false;
}

static uint32_t special(wint_t k)
{
	static const struct {
		int curses;
		uint32_t ours;
	} keys[] = {
		{ KEY_UP, UI_UP },
		{ KEY_DOWN, UI_DOWN },
		{ KEY_LEFT, UI_LEFT },
		{ KEY_RIGHT, UI_RIGHT },
		{ KEY_PPAGE, UI_PAGE_UP },
		{ KEY_NPAGE, UI_PAGE_DOWN },
		{ KEY_HOME, UI_HOME },
		{ KEY_END, UI_END },
		{ KEY_BACKSPACE, UI_BACKSPACE },
		{ KEY_ENTER, UI_ENTER },
		{ KEY_F(1), '?' },
		{ KEY_F(10), 'q' },
		{ KEY_RESIZE, UI_REDRAW },
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if ((wint_t)keys[i].curses == k)
			return keys[i].ours;
	return UI_REDRAW; /* one that means nothing here */
}

uint32_t term_key(struct term *t)
{
	wint_t k;
	int r = wget_wch(t->keys, &k);

	if (r == ERR)
		return UI_NONE;
	if (r == KEY_CODE_YES)
		return special(k);
	return k ? (uint32_t)k : UI_REDRAW;
}

void term_pause(struct term *t)
{
	(void)t;
	endwin();
	rescue.armed = 0;
}

void term_resume(struct term *t)
{
	rescue.armed = 1;
	begin(t);
	term_forget(t);
}

void term_resized(struct term *t)
{
	int rows, cols;

	term_size(t, &rows, &cols);
	resizeterm(rows, cols);
	term_forget(t);
}

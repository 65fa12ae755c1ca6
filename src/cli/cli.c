/* SPDX-License-Identifier: MIT */
#include "cli/command.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DRAIN_AT = 64 << 10 };

void cli_keep_std(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		int got;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free descriptor is this one. For 1 and 2 the wrong mode on purpose:
		 * a write fails as it would on the closed descriptor. */
		got = open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
		if (got > 2)
			close(got);
	}
}

bool cli_flush(struct cli *cli)
{
	if (!cli->write_error && !buf_ok(&cli->out))
		cli->write_error = -ENOMEM;
	if (!cli->write_error && cli->out.len)
		cli->write_error = io_write_all(STDOUT_FILENO, cli->out.data, cli->out.len);
	buf_reset(&cli->out);
	return !cli->write_error;
}

bool cli_drain(struct cli *cli)
{
	return cli->out.len < DRAIN_AT && buf_ok(&cli->out) ? !cli->write_error : cli_flush(cli);
}

int cli_finish(struct cli *cli, int status)
{
	struct err e = { 0 };
	char why[80];

	cli_flush(cli);
	buf_done(&cli->out);
	if (cli->write_error == -EPIPE) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	if (!cli->write_error)
		return status;
	err_set(&e, cli->write_error, "cannot write to standard output: %s",
		err_name(cli->write_error, why, sizeof(why)));
	cli_fail(cli, &e);
	return status ? status : EXIT_FAILED;
}

static void say_line(const struct cli *cli, enum ink ink, const char *label, const char *text)
{
	auto_done(buf) struct buf line = { 0 };

	buf_printf(&line, "%s%s%s", cli_ink(cli->color_err, ink), label,
		   cli_ink(cli->color_err && ink, INK_PLAIN));
	/* Words may quote names of files and processes. */
	text_safe(&line, text, strlen(text));
	buf_char(&line, '\n');
	(void)io_write_all(STDERR_FILENO, buf_text(&line), line.len);
}

void cli_say(const struct cli *cli, const char *fmt, ...)
{
	auto_done(buf) struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	say_line(cli, INK_PLAIN, "", buf_text(&text));
}

int cli_fail(const struct cli *cli, const struct err *e)
{
	char why[80];

	say_line(cli, INK_RED,
		 "spotter: ", e->text[0] ? e->text : err_name(e->code, why, sizeof(why)));
	if (e->hint[0])
		say_line(cli, INK_PLAIN, "  ", e->hint);
	return EXIT_FAILED;
}

int cli_misuse(const struct cli *cli, const struct err *e)
{
	const struct command *c = cli->command;

	cli_fail(cli, e);
	if (c)
		cli_say(cli, "  usage: spotter %s [OPTION...]%s%s   (more: spotter help %s)",
			c->name, *c->words ? " " : "", c->words, c->name);
	return c && c->usage_status ? c->usage_status : EXIT_USAGE;
}

int cli_usage(const struct cli *cli, const char *fmt, ...)
{
	struct err e = { .code = -EINVAL };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.text, sizeof(e.text), fmt, ap);
	va_end(ap);
	return cli_misuse(cli, &e);
}

static bool is_set(const char *name)
{
	const char *v = getenv(name);

	return v && *v;
}

static bool is_forced(const char *name)
{
	const char *v = getenv(name);

	return v && *v && strcmp(v, "0") != 0;
}

bool cli_color(const char *flag, int fd)
{
	const char *term = getenv("TERM");

	if (flag && strcmp(flag, "always") == 0)
		return true;
	if (flag && strcmp(flag, "never") == 0)
		return false;
	if (is_set("NO_COLOR"))
		return false;
	if (is_forced("CLICOLOR_FORCE") || is_forced("FORCE_COLOR"))
		return true;
	if (!term || !*term || strcmp(term, "dumb") == 0)
		return false;
	return isatty(fd);
}

unsigned cli_columns(int fd)
{
	struct winsize ws;

	return isatty(fd) && ioctl(fd, TIOCGWINSZ, &ws) == 0 ? ws.ws_col : 0;
}

const char *cli_ink(bool on, enum ink ink)
{
	static const char *const sgr[] = {
		[INK_PLAIN] = "\033[0m",  [INK_BOLD] = "\033[1m",   [INK_DIM] = "\033[2m",
		[INK_RED] = "\033[1;31m", [INK_GREEN] = "\033[32m", [INK_YELLOW] = "\033[33m",
		[INK_CYAN] = "\033[36m",
	};

	return on ? sgr[ink] : "";
}

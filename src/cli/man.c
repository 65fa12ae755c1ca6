/* SPDX-License-Identifier: MIT
 *
 * Man pages in roff, from the same tables as --help: `spotter help --man [COMMAND]`. The build runs
 * the program it has just made and installs what this prints, so there is no page to forget.
 */
#include "cli/command.h"

#include <ctype.h>
#include <string.h>

/* Text in roff: no line may begin with a control character, a backslash is \e, and a dash is the
 * one that can be typed. */
static void put_roff(const char *s, size_t n, struct buf *out)
{
	bool line_start = true;

	for (size_t i = 0; i < n; i++) {
		if (line_start && (s[i] == '.' || s[i] == '\''))
			buf_str(out, "\\&");
		line_start = s[i] == '\n';
		switch (s[i]) {
		case '\\':
			buf_str(out, "\\e");
			break;
		case '-':
			buf_str(out, "\\-");
			break;
		case '\'':
			buf_str(out, "\\(aq");
			break;
		case '`':
			buf_str(out, "\\(ga");
			break;
		case '^':
			buf_str(out, "\\(ha");
			break;
		case '~':
			buf_str(out, "\\(ti");
			break;
		default:
			buf_char(out, s[i]);
		}
	}
}

static void put_text(const char *s, struct buf *out)
{
	put_roff(s, strlen(s), out);
}

static void put_title(const char *name, struct buf *out)
{
	buf_str(out, ".TH ");
	for (const char *p = name; *p; p++) {
		char upper = (char)toupper((unsigned char)*p);

		put_roff(&upper, 1, out);
	}
	/* No date: the same source must give the same page. */
	buf_printf(out, " 1 \"\" \"spotter %s\" \"Spotter Manual\"\n", SPOTTER_VERSION);
}

static void put_description(const char *text, struct buf *out)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t n = end ? (size_t)(end - text) : strlen(text);
		bool verbatim = text[0] == ' ';

		buf_str(out, verbatim ? ".PP\n.nf\n" : ".PP\n");
		put_roff(text, n, out);
		buf_str(out, verbatim ? "\n.fi\n" : "\n");
		text += n + (end ? 2 : 0);
	}
}

static void put_options(const struct opt *opts, struct buf *out)
{
	for (const struct opt *o = opts; o->kind != OPT_NONE; o++) {
		if (o->hidden)
			continue;
		buf_str(out, ".TP\n");
		if (o->letter) {
			buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
		}
		buf_str(out, "\\fB\\-\\-");
		put_text(o->name, out);
		buf_str(out, "\\fR");
		if (o->arg) {
			buf_str(out, o->optional_arg ? "[=\\fI" : " \\fI");
			put_text(o->arg, out);
			buf_str(out, o->optional_arg ? "\\fR]" : "\\fR");
		}
		buf_char(out, '\n');
		put_text(o->help, out);
		buf_char(out, '\n');
	}
}

static void put_examples(const struct example *ex, struct buf *out)
{
	for (; ex->line; ex++) {
		buf_str(out, ".TP\n\\fBspotter ");
		put_text(ex->line, out);
		buf_str(out, "\\fR\n");
		put_text(ex->says, out);
		buf_char(out, '\n');
	}
}

static void put_exit_status(const struct command *c, struct buf *out)
{
	if (c->stop_at_word) {
		buf_str(out,
			".SH EXIT STATUS\n"
			"That of the program that was run; a program killed by a signal ends\n"
			"Spotter by the same signal. 125 when Spotter itself failed, 126 when the\n"
			"program could not be executed, 127 when it was not found.\n");
		return;
	}
	buf_str(out, ".SH EXIT STATUS\n0 when it worked, 1 when it failed, 2 when it was used "
		     "wrongly.\n");
}

void man_page(const struct command *c, struct buf *out)
{
	char name[64];

	snprintf(name, sizeof(name), "spotter-%s", c->name);
	put_title(name, out);
	buf_str(out, ".SH NAME\n");
	put_text(name, out);
	buf_str(out, " \\- ");
	put_text(c->summary, out);
	buf_printf(out, "\n.SH SYNOPSIS\n\\fBspotter %s\\fR [\\fIOPTION\\fR...]%s", c->name,
		   *c->words ? " " : "");
	put_text(c->words, out);
	buf_str(out, "\n.SH DESCRIPTION\n");
	put_description(c->description, out);
	buf_str(out, ".SH OPTIONS\n");
	put_options(c->opts, out);
	if (c->examples) {
		buf_str(out, ".SH EXAMPLES\n");
		put_examples(c->examples, out);
	}
	put_exit_status(c, out);
	buf_str(out, ".SH SEE ALSO\n\\fBspotter\\fR(1)\n");
}

static void put_environment(struct buf *out)
{
	static const struct {
		const char *name, *text;
	} rows[] = {
		{ "SPOTTER_DIR", "folder in which runs are kept" },
		{ "XDG_STATE_HOME", "runs are kept in $XDG_STATE_HOME/spotter/runs when "
				    "SPOTTER_DIR is not set, and in "
				    "~/.local/state/spotter/runs when neither is" },
		{ "NO_COLOR", "when not empty: no colour" },
		{ "CLICOLOR_FORCE, FORCE_COLOR",
		  "when not empty and not 0: colour even in a pipe" },
		{ "TERM", "no colour when it is dumb or not set" },
	};

	buf_str(out, ".SH ENVIRONMENT\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_printf(out, ".TP\n\\fB%s\\fR\n", rows[i].name);
		put_text(rows[i].text, out);
		buf_char(out, '\n');
	}
}

void man_overview(const struct cli *cli, struct buf *out)
{
	put_title("spotter", out);
	buf_str(out,
		".SH NAME\nspotter \\- watches a model train and says why it is slow\n"
		".SH SYNOPSIS\n\\fBspotter\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.br\n"
		"\\fBspotter run \\-\\-\\fR \\fIPROGRAM\\fR [\\fIARGUMENT\\fR...]\n"
		".SH DESCRIPTION\n"
		"Spotter runs any program, records what the whole job uses (CPU, memory, disks,\n"
		"network, processes and threads) without slowing it down, and says at the end in\n"
		"numbers that add up what it used and what held it back. It needs no root, no\n"
		"daemon and no change to the program.\n"
		".PP\n"
		"\\fIRUN\\fR is a file, a name, an id (or the start of one), or \\fBlast\\fR, the "
		"default.\nData goes to standard output, words to standard error.\n"
		".SH COMMANDS\n");
	for (const struct command *const *c = cli->commands; *c; c++) {
		if ((*c)->hidden)
			continue;
		buf_printf(out, ".TP\n\\fBspotter\\-%s\\fR(1)\n", (*c)->name);
		put_text((*c)->summary, out);
		buf_char(out, '\n');
	}
	put_environment(out);
	buf_str(out,
		".SH EXIT STATUS\n0 when it worked, 1 when it failed, 2 when it was used wrongly;\n"
		"see \\fBspotter\\-run\\fR(1) for that of a program that was run.\n");
}

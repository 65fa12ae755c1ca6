/* SPDX-License-Identifier: MIT
 *
 * --help: examples first, because that is what people look for.
 */
#include "cli/command.h"

#include <ctype.h>
#include <string.h>

enum { COLUMNS = 80 };

void help_wrap(const char *text, unsigned indent, unsigned width, struct buf *out)
{
	size_t column = 0;

	for (const char *p = text; *p;) {
		size_t n = strcspn(p, " \n");

		if (column && column + 1 + n > width) {
			buf_char(out, '\n');
			column = 0;
		}
		if (column)
			buf_char(out, ' ');
		else
			buf_printf(out, "%*s", (int)indent, "");
		buf_put(out, p, n);
		column += n + (column ? 1 : indent);
		p += n + strspn(p + n, " \n");
	}
	if (column)
		buf_char(out, '\n');
}

/* One block of a description: text up to the next blank line. */
static void put_block(const char *text, size_t n, struct buf *out)
{
	char block[2048];

	if (text[0] == ' ') {
		buf_put(out, text, n);
		buf_char(out, '\n');
		return;
	}
	n = n < sizeof(block) - 1 ? n : sizeof(block) - 1;
	memcpy(block, text, n);
	block[n] = '\0';
	help_wrap(block, 0, COLUMNS, out);
}

static void put_description(const char *text, struct buf *out)
{
	while (*text) {
		const char *end = strstr(text, "\n\n");
		size_t n = end ? (size_t)(end - text) : strlen(text);

		put_block(text, n, out);
		text += n + (end ? 2 : 0);
		if (*text)
			buf_char(out, '\n');
	}
}

static void put_heading(const char *text, bool color, struct buf *out)
{
	buf_printf(out, "\n%s%c%s%s\n", cli_ink(color, INK_BOLD), toupper((unsigned char)text[0]),
		   text + 1, cli_ink(color, INK_PLAIN));
}

static void put_examples(const struct example *ex, struct buf *out)
{
	int widest = 0;

	for (const struct example *e = ex; e->line; e++) {
		int n = (int)strlen(e->line);

		widest = n > widest && n <= 48 ? n : widest;
	}
	for (const struct example *e = ex; e->line; e++) {
		size_t used = strlen(e->line) + 10;

		if ((int)strlen(e->line) > widest ||
		    used + (size_t)widest - strlen(e->line) + 3 + strlen(e->says) > COLUMNS)
			buf_printf(out, "  spotter %s\n      %s\n", e->line, e->says);
		else
			buf_printf(out, "  spotter %-*s   %s\n", widest, e->line, e->says);
	}
}

void help_page(const struct command *c, bool color, struct buf *out)
{
	buf_printf(out, "%sspotter %s%s - %s\n", cli_ink(color, INK_BOLD), c->name,
		   cli_ink(color, INK_PLAIN), c->summary);
	if (c->examples) {
		put_heading("Examples", color, out);
		put_examples(c->examples, out);
	}
	put_heading("Usage", color, out);
	buf_printf(out, "  spotter %s [OPTION...]%s%s\n\n", c->name, *c->words ? " " : "",
		   c->words);
	put_description(c->description, out);
	put_heading("Options", color, out);
	opt_help(c->opts, out);
}

static void put_group(const struct cli *cli, const char *group, struct buf *out)
{
	put_heading(group, cli->color_out, out);
	for (const struct command *const *c = cli->commands; *c; c++)
		if (!(*c)->hidden && strcmp((*c)->group, group) == 0)
			buf_printf(out, "  %-12s %s\n", (*c)->name, (*c)->summary);
}

void help_overview(const struct cli *cli, struct buf *out)
{
	const char *group = "";

	buf_printf(out, "%sspotter%s %s - watches a model train and says why it is slow\n\n",
		   cli_ink(cli->color_out, INK_BOLD), cli_ink(cli->color_out, INK_PLAIN),
		   SPOTTER_VERSION);
	buf_str(out, "  spotter run -- python train.py    run it, record it, get a verdict\n"
		     "  spotter why                       the verdict of the last run\n"
		     "  spotter top                       what this machine is doing now\n");
	/* Groups in the order in which the table first names them. */
	for (const struct command *const *c = cli->commands; *c; c++) {
		if ((*c)->hidden || strcmp((*c)->group, group) == 0)
			continue;
		group = (*c)->group;
		put_group(cli, group, out);
	}
	buf_str(out,
		"\nRUN is a file, a name, an id (or the start of one), or 'last', the default.\n"
		"'spotter help COMMAND' tells more, 'spotter --version' the version.\n");
}

/* SPDX-License-Identifier: MIT
 *
 * The text of source lines: what a record shows beside file:line, and what tells `x.to(device)` from
 * `loss.item()`, which have no Python frame of their own. Source files may lie on storage that hangs, so
 * a thread of its own reads them; nobody ever waits for it, and one that is stuck is left behind.
 *
 * A file that was changed after the process started is not what runs: its lines are not told. Nor are those of a file
 * that the process itself could not read (engine/source_open.h).
 *
 * A file of the program's own is also looked through, once, for lines that keep something of every step
 * (explain/keeps/keeps.h) and for what its functions are for (explain/does/does.h): a few million instructions for a
 * script of one to three hundred lines.
 */
#ifndef SPOTTER_ENGINE_SOURCE_TEXT_H
#define SPOTTER_ENGINE_SOURCE_TEXT_H

#include "model/stacks.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct source_text;

enum { SOURCE_LINE_MAX = 200 };

/* A line that may keep something of every step, a range of lines that is for something. */
struct source_note {
	enum place_kind kind;
	int32_t line;
	char function[80], text[SOURCE_LINE_MAX]; /* foreign */
};

/* NULL: no thread, no memory; then all of these do nothing. */
struct source_text *source_text_start(void);
void source_text_stop(struct source_text *s);
/* Asks for a line of a file as this process sees it; dropped when too many are waiting. started_ns:
 * wall clock of the start of the process. */
void source_text_ask(struct source_text *s, uint32_t place, pid_t pid, int64_t started_ns,
		     const char *file, int32_t line);
/* An answer; false: none now. Text is trimmed and cut. */
bool source_text_next(struct source_text *s, uint32_t *ret_place, char text[SOURCE_LINE_MAX]);

/* Something that was found in a file, as a place: false: none now. The name of its file is to be freed. */
bool source_text_note(struct source_text *s, char **ret_file, struct source_note *ret);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The verdict in two sentences, and other words that views share.
 */
#ifndef SPOTTER_TUI_WORDS_H
#define SPOTTER_TUI_WORDS_H

#include "tui/board.h"

struct headline {
	unsigned tone; /* enum tone */
	uint32_t mark; /* glyph before it */
	char says[320];
	char then[480]; /* what to do about it, what is to be gained; "" nothing */
};

void words_headline(const struct board *b, struct headline *ret);
/* "1.8 times as fast", "34 % faster"; "" without a figure. */
const char *words_gain(const struct finding *f, char *buf, size_t size);
/* "80 s", "13 min", "2.5 h": a stretch of time, roughly. */
const char *words_span(double seconds, char *buf, size_t size);
/* "0:12", "1:02:03": a position in a run. */
const char *words_clock(double seconds, char *buf, size_t size);

#endif

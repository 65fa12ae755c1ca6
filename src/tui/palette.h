/* SPDX-License-Identifier: MIT
 *
 * What things are called by views ("a warning", "the GPU's graph") and how that looks in as many colours
 * as the terminal has. Colours are those of Okabe and Ito, which people who do not tell red from green
 * tell apart; nothing is said by colour alone.
 */
#ifndef SPOTTER_TUI_PALETTE_H
#define SPOTTER_TUI_PALETTE_H

#include <stdbool.h>
#include <stddef.h>

enum color_mode { COLOR_NONE, COLOR_16, COLOR_256, COLOR_TRUE };

enum tone {
	TONE_PLAIN,
	TONE_DIM,
	TONE_TITLE,
	TONE_FRAME,
	TONE_KEY,
	TONE_GOOD,
	TONE_WARN,
	TONE_BAD,
	TONE_CPU,
	TONE_MEMORY,
	TONE_GPU,
	TONE_DISK,
	TONE_STEP,
	/* How much of something is used, a fifth each. */
	TONE_LOAD0,
	TONE_LOAD1,
	TONE_LOAD2,
	TONE_LOAD3,
	TONE_LOAD4,
	/* Parts of a ledger. */
	TONE_PART0,
	TONE_PARTS = TONE_PART0 + 12,
	TONES = TONE_PARTS,
};

/* A look is a tone and these. */
enum { LOOK_TONE = 0xff, LOOK_BOLD = 0x100, LOOK_REVERSE = 0x200 };

/* "1;38;5;208": the numbers of the escape sequence that makes the look out of the terminal's own. */
const char *palette_sgr(unsigned look, enum color_mode mode, char *buf, size_t size);
/* TONE_LOAD0.. of a share. */
unsigned palette_load(double share);

/* wanted: the user (or his environment) wants colour at all. colorterm: the variable of that name, may be
 * NULL. colors: what the terminal's description says. */
enum color_mode palette_mode(bool wanted, const char *colorterm, int colors);

#endif

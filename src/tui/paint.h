/* SPDX-License-Identifier: MIT
 *
 * From one screen to the next as bytes for a terminal (ECMA-48: positions and looks, nothing else).
 */
#ifndef SPOTTER_TUI_PAINT_H
#define SPOTTER_TUI_PAINT_H

#include "tui/canvas.h"

/* was: what is on the terminal, NULL or of another size: nothing is, and it is cleared. Nothing is put
 * where nothing changed. */
void paint(const struct canvas *was, const struct canvas *is, enum color_mode mode,
	   struct buf *out);

#endif

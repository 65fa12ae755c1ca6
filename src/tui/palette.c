/* SPDX-License-Identifier: MIT */
#include "tui/palette.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* rgb -1: the terminal's own. low: the colour of sixteen (0-7, +8 bright), -1 none. mono: bold where
 * there are no colours. */
struct ink_row {
	int32_t rgb;
	int8_t low;
	bool mono;
};

static const struct ink_row rows[TONES] = {
	[TONE_PLAIN] = { -1, -1, false },
	[TONE_DIM] = { 0x8a8a8a, 8, false },
	[TONE_TITLE] = { -1, -1, true },
	[TONE_FRAME] = { 0x6c6c6c, 8, false },
	[TONE_KEY] = { 0x56b4e9, 6, true },
	[TONE_GOOD] = { 0x009e73, 2, false },
	[TONE_WARN] = { 0xe69f00, 3, true },
	[TONE_BAD] = { 0xd55e00, 1, true },
	[TONE_CPU] = { 0x56b4e9, 6, false },
	[TONE_MEMORY] = { 0xcc79a7, 5, false },
	[TONE_GPU] = { 0x009e73, 2, false },
	[TONE_DISK] = { 0xe69f00, 3, false },
	[TONE_STEP] = { 0x5a8fd6, 4, false },
	[TONE_LOAD0] = { 0x56b4e9, 6, false },
	[TONE_LOAD1] = { 0x2aa9a0, 2, false },
	[TONE_LOAD2] = { 0xb8b83a, 3, false },
	[TONE_LOAD3] = { 0xe69f00, 11, false },
	[TONE_LOAD4] = { 0xd55e00, 1, false },
	[TONE_PART0 + 0] = { 0xd55e00, 1, false },
	[TONE_PART0 + 1] = { 0xe69f00, 3, false },
	[TONE_PART0 + 2] = { 0xf0e442, 11, false },
	[TONE_PART0 + 3] = { 0x0072b2, 4, false },
	[TONE_PART0 + 4] = { 0x56b4e9, 6, false },
	[TONE_PART0 + 5] = { 0x009e73, 2, false },
	[TONE_PART0 + 6] = { 0xcc79a7, 5, false },
	[TONE_PART0 + 7] = { 0x9a6a3a, 9, false },
	[TONE_PART0 + 8] = { 0x8f6fd0, 13, false },
	[TONE_PART0 + 9] = { 0x7fbf7f, 10, false },
	[TONE_PART0 + 10] = { 0xa0a0a0, 7, false },
	[TONE_PART0 + 11] = { 0x5f5f5f, 8, false },
};

/* Nearest of the 6 x 6 x 6 cube (16..231) or of the greys (232..255) that every terminal of 256 colours
 * has alike; the first sixteen are the user's own. */
static int nearest_256(int32_t rgb)
{
	static const int level[] = { 0, 95, 135, 175, 215, 255 };
	int part[3] = { rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255 }, at[3];
	int grey, cube_far = 0, grey_far = 0;

	for (int i = 0; i < 3; i++) {
		at[i] = 0;
		for (int k = 1; k < 6; k++)
			if (abs(level[k] - part[i]) < abs(level[at[i]] - part[i]))
				at[i] = k;
		cube_far += abs(level[at[i]] - part[i]);
	}
	grey = (part[0] + part[1] + part[2]) / 3;
	grey = grey < 8 ? 0 : grey > 238 ? 23 : (grey - 8 + 5) / 10;
	for (int i = 0; i < 3; i++)
		grey_far += abs(8 + 10 * grey - part[i]);
	return grey_far < cube_far ? 232 + grey : 16 + 36 * at[0] + 6 * at[1] + at[2];
}

static void put(char *buf, size_t size, const char *text)
{
	size_t n = strlen(buf);

	snprintf(buf + n, size - n, "%s%s", n ? ";" : "", text);
}

const char *palette_sgr(unsigned look, enum color_mode mode, char *buf, size_t size)
{
	unsigned tone = look & LOOK_TONE;
	const struct ink_row *r = &rows[tone < TONES ? tone : TONE_PLAIN];
	char text[32];

	buf[0] = '\0';
	put(buf, size, "0");
	if (look & LOOK_BOLD || (mode == COLOR_NONE && r->mono))
		put(buf, size, "1");
	if (look & LOOK_REVERSE)
		put(buf, size, "7");
	if (mode == COLOR_NONE || r->rgb < 0)
		return buf;
	if (mode == COLOR_16)
		snprintf(text, sizeof(text), "%d", r->low < 8 ? 30 + r->low : 82 + r->low);
	else if (mode == COLOR_256)
		snprintf(text, sizeof(text), "38;5;%d", nearest_256(r->rgb));
	else
		snprintf(text, sizeof(text), "38;2;%d;%d;%d", r->rgb >> 16 & 255, r->rgb >> 8 & 255,
			 r->rgb & 255);
	put(buf, size, text);
	return buf;
}

unsigned palette_load(double share)
{
	int step = share > 0 ? (int)floor(share * 5) : 0;

	return TONE_LOAD0 + (unsigned)(step > 4 ? 4 : step);
}

enum color_mode palette_mode(bool wanted, const char *colorterm, int colors)
{
	if (!wanted)
		return COLOR_NONE;
	if (colorterm && (strcmp(colorterm, "truecolor") == 0 || strcmp(colorterm, "24bit") == 0))
		return COLOR_TRUE;
	return colors >= 256 ? COLOR_256 : colors >= 8 ? COLOR_16 : COLOR_NONE;
}

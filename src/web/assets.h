/* SPDX-License-Identifier: MIT
 *
 * What the program carries along for its pages, made from web/ and docs/causes/ by web/embed.py when it
 * is built. Texts end with a NUL that is not counted.
 */
#ifndef SPOTTER_WEB_ASSETS_H
#define SPOTTER_WEB_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

struct asset {
	const char *text;
	size_t size;
	const char *sha256; /* base64, as a Content-Security-Policy names it */
};

extern const struct asset asset_script, asset_style;
/* The dashboard's: a script that stands behind asset_script, a style that has asset_style in it. */
extern const struct asset asset_serve, asset_serve_style;
extern const bool asset_has_charts; /* uPlot is in the script */

struct cause_page {
	const char *id, *text;
};
extern const struct cause_page cause_pages[]; /* by id; ends with id NULL */

const char *cause_page(const char *id); /* Markdown; NULL: there is none */

#endif

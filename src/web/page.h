/* SPDX-License-Identifier: MIT
 *
 * A run as one HTML file that needs nothing else: style, script and data are in it, and its policy
 * (Content-Security-Policy) lets no other script run and nothing be fetched. It stays under PAGE_MOST
 * bytes whatever the record is.
 */
#ifndef SPOTTER_WEB_PAGE_H
#define SPOTTER_WEB_PAGE_H

#include <stddef.h>

struct buf;
struct verdict;
struct window;

enum { PAGE_MOST = 500000 };

/* 0 or -errno. */
int page_html(const struct window *w, const struct verdict *v, struct buf *out);

/* Text for between tags and for attributes in double quotes; made safe to show. */
void page_escape(struct buf *out, const char *text, size_t n);
/* JSON for a script element: nothing in it can end the element or begin another. */
void page_json(struct buf *out, const char *json, size_t n);

#endif

/* SPDX-License-Identifier: MIT
 *
 * The dashboard's HTML: little more than an empty page, as all that it shows comes as JSON and is drawn by
 * the scripts that reports have, too (web/app) and the dashboard's own (web/serve).
 */
#ifndef SPOTTER_WEB_SERVE_PAGE_H
#define SPOTTER_WEB_SERVE_PAGE_H

struct buf;

/* What a browser lets the page do: its own scripts and style, requests to this server, nothing else. */
#define SERVE_POLICY                                                               \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; " \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* run: an id that serve_id_ok() has seen; "" the list. */
void serve_page(const char *run, struct buf *out);
/* To one who came by a link from another site: goes on to `to` by itself, so that the browser takes the
 * next request for one of this site, and sends the cookie along. */
void serve_page_enter(const char *to, struct buf *out);

#endif

/* SPDX-License-Identifier: MIT */
#include "web/serve_page.h"

#include "base/buf.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta name=\"referrer\" content=\"no-referrer\">\n"
    "<meta name=\"generator\" content=\"Spotter " SPOTTER_VERSION "\">\n"
    /* the sign beside the name: a browser that is given none asks for one */
    "<link rel=\"icon\" href=\"data:image/svg+xml,"
    "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Ccircle cx='9.5' cy='8' r='5.5' fill='%236bbd96'/%3E"
    "%3Ccircle cx='6.5' cy='8' r='5.5' fill='%23f2a54a'/%3E%3C/svg%3E\">\n";

void serve_page(const char *run, struct buf *out)
{
	buf_str(out, head);
	buf_str(out, "<title>spotter</title>\n<link rel=\"stylesheet\" href=\"/app.css\">\n"
		     "</head>\n");
	buf_printf(out, "<body data-run=\"%s\">\n<main id=\"app\" tabindex=\"-1\">", run);
	buf_str(out, "<noscript><h1>Spotter</h1>\n<p>This page is drawn by scripts. Without them: "
		     "<code>spotter runs</code>, <code>spotter report</code>.</p></noscript>"
		     "</main>\n<script src=\"/app.js\"></script>\n"
		     "<script src=\"/serve.js\"></script>\n</body>\n</html>\n");
}

void serve_page_enter(const char *to, struct buf *out)
{
	buf_str(out, head);
	buf_printf(out,
		   "<title>spotter</title>\n<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n"
		   "</head>\n<body>\n<p><a href=\"%s\">To the runs</a></p>\n</body>\n</html>\n",
		   to, to);
}

/* SPDX-License-Identifier: MIT */
#include "web/page.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/text.h"
#include "explain/verdict.h"
#include "model/run.h"
#include "web/assets.h"
#include "web/story.h"
#include "web/svg.h"

#include <errno.h>
#include <string.h>

/* Of the text for those without scripts: a verdict has some thousand bytes. */
enum { TEXT_MOST = 30000 };

void page_escape(struct buf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = text_utf8(text + i, n - i);

		len = len ? len : 1;
		switch (text[i]) {
		case '&':
			buf_str(out, "&amp;");
			break;
		case '<':
			buf_str(out, "&lt;");
			break;
		case '>':
			buf_str(out, "&gt;");
			break;
		case '"':
			buf_str(out, "&quot;");
			break;
		case '\'':
			buf_str(out, "&#39;");
			break;
		case '\n':
			buf_char(out, '\n');
			break;
		default:
			/* U+FFFE and U+FFFF are no characters, and an XML file with one is none. */
			if (len == 3 && memcmp(text + i, "\xef\xbf", 2) == 0 &&
			    ((unsigned char)text[i + 2] & 0xfe) == 0xbe)
				buf_char(out, '?');
			else
				text_safe(out, text + i, len);
		}
		i += len;
	}
}

void page_json(struct buf *out, const char *json, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)json[i];

		if (c == '<' || c == '>' || c == '&') {
			buf_printf(out, "\\u%04x", c);
		} else if (c == 0xe2 && i + 2 < n && (unsigned char)json[i + 1] == 0x80 &&
			   ((unsigned char)json[i + 2] & 0xfe) == 0xa8) {
			/* U+2028 and U+2029 are ends of lines to a script */
			buf_printf(out, "\\u202%x", (unsigned char)json[i + 2] & 0xf);
			i += 2;
		} else {
			buf_char(out, json[i]);
		}
	}
}

static void put_head(const struct run_info *run, struct buf *out)
{
	buf_printf(out,
		   "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		   "script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; "
		   "form-action 'none'\">\n",
		   asset_script.sha256, asset_style.sha256);
	buf_str(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		     "<meta name=\"color-scheme\" content=\"light dark\">\n"
		     "<meta name=\"referrer\" content=\"no-referrer\">\n"
		     "<meta name=\"generator\" content=\"Spotter " SPOTTER_VERSION "\">\n<title>");
	page_escape(out, run->name, strlen(run->name));
	buf_str(out, ": Spotter</title>\n<style>");
	buf_put(out, asset_style.text, asset_style.size);
	buf_str(out, "</style>\n</head>\n");
}

static void put_plain(const struct verdict *v, struct buf *out)
{
	auto_done(buf) struct buf text = { 0 };

	render_text(v, &(struct render_style){ 0 }, &text);
	buf_str(out, "<noscript><h1>Spotter</h1>\n<pre>");
	page_escape(out, buf_text(&text), text.len < TEXT_MOST ? text.len : TEXT_MOST);
	buf_str(out, "</pre></noscript>");
	out->failed |= text.failed;
}

static void put_body(const struct story *s, const struct verdict *v, struct buf *out)
{
	auto_done(buf) struct buf json = { 0 };

	story_json(s, &json);
	buf_str(out, "<body>\n<main id=\"app\" tabindex=\"-1\">");
	put_plain(v, out);
	buf_str(out, "</main>\n");
	if (!asset_has_charts) {
		buf_str(out, "<div id=\"timeline-svg\" hidden>");
		svg_timeline(&s->timeline, v, out);
		buf_str(out, "</div>\n");
	}
	buf_str(out, "<script type=\"application/json\" id=\"story\">");
	page_json(out, buf_text(&json), json.len);
	buf_str(out, "</script>\n<script>");
	buf_put(out, asset_script.text, asset_script.size);
	buf_str(out, "</script>\n</body>\n</html>\n");
	out->failed |= json.failed;
}

/* One level of detail: 0, -EFBIG when it is too large, -errno. */
static int put_page(const struct window *w, const struct verdict *v, unsigned level,
		    struct buf *out)
{
	struct verdict safe = *v;
	auto_done(run_info) struct run_info run = { 0 };
	struct story s;
	int r = story_run(v->run, &run);

	if (r == 0)
		r = story_take(w, v, level, &s);
	if (r < 0)
		return r;
	safe.run = &run;
	put_head(&run, out);
	put_body(&s, &safe, out);
	story_done(&s);
	if (!buf_ok(out))
		return -ENOMEM;
	return out->len > PAGE_MOST ? -EFBIG : 0;
}

int page_html(const struct window *w, const struct verdict *v, struct buf *out)
{
	int r = -EFBIG;

	for (unsigned level = 0; level < STORY_LEVELS && r == -EFBIG; level++) {
		auto_done(buf) struct buf page = { 0 };

		r = put_page(w, v, level, &page);
		if (r == 0)
			buf_put(out, page.data, page.len);
	}
	return r == 0 && !buf_ok(out) ? -ENOMEM : r;
}

/* SPDX-License-Identifier: MIT */
#include "cli/report_file.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/judge.h"
#include "cli/progress.h"
#include "record/reader.h"
#include "web/page.h"
#include "web/svg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_stdout(const char *path)
{
	return strcmp(path, "-") == 0;
}

static int open_one(struct outfile *o, const char *path, const struct report_paths *paths,
		    const char *record, struct err *e)
{
	if (!path || is_stdout(path))
		return 0;
	if (record[0] && outfile_is_same(path, record))
		return err_set(e, -EINVAL, "'%s' is the record itself", path);
	return outfile_open(o, path, paths->force, e);
}

int report_files_open(struct report_files *f, const struct report_paths *paths, const char *record,
		      struct err *e)
{
	int r;

	f->html.fd = f->svg.fd = -1;
	if (paths->html && paths->svg && strcmp(paths->html, paths->svg) == 0)
		return err_set(e, -EINVAL, "--html and --svg cannot both be '%s'", paths->html);
	r = open_one(&f->html, paths->html, paths, record, e);
	return r < 0 ? r : open_one(&f->svg, paths->svg, paths, record, e);
}

static int write_one(struct cli *cli, struct outfile *o, const char *path, const struct buf *text,
		     struct err *e)
{
	char shown[200], size[32], why[80];
	int r;

	if (is_stdout(path)) {
		buf_put(&cli->out, text->data, text->len);
		return 0;
	}
	r = io_write_all(o->fd, text->data, text->len);
	if (r < 0)
		return err_set(e, r, "cannot write '%s': %s", path, err_name(r, why, sizeof(why)));
	r = outfile_commit(o, e);
	if (r == 0)
		cli_say(cli, "spotter: %s is written (%s)",
			text_safe_copy(shown, sizeof(shown), path),
			num_bytes((double)text->len, size, sizeof(size)));
	return r;
}

static int put_svg(const struct window *w, const struct verdict *v, struct buf *out)
{
	struct timeline t;
	int r = timeline_take(w, v, 0, &t);

	if (r < 0)
		return r;
	svg_report(&t, v, out);
	timeline_done(&t);
	return buf_ok(out) ? 0 : -ENOMEM;
}

static void pulse(void *progress)
{
	progress_pulse(progress);
}

/* Of a long run there is much to read once more. */
static int make(const struct cli *cli, const struct report_paths *paths, const struct judged *j,
		struct buf *html, struct buf *svg)
{
	struct progress progress;
	int r;

	progress_begin(&progress, "drawing", cli->quiet);
	if (j->record)
		record_on_read(j->record, pulse, &progress);
	r = paths->html ? page_html(&j->window, &j->verdict, html) : 0;
	if (r == 0 && paths->svg)
		r = put_svg(&j->window, &j->verdict, svg);
	if (j->record)
		record_on_read(j->record, NULL, NULL);
	progress_end(&progress);
	return r;
}

int report_files_write(struct cli *cli, struct report_files *f, const struct report_paths *paths,
		       const struct judged *j, struct err *e)
{
	auto_done(buf) struct buf html = { 0 }, svg = { 0 };
	char why[80];
	int r = make(cli, paths, j, &html, &svg);

	if (r < 0)
		return err_set(e, r, "cannot make the report: %s", err_name(r, why, sizeof(why)));
	if (paths->html)
		r = write_one(cli, &f->html, paths->html, &html, e);
	if (r == 0 && paths->svg)
		r = write_one(cli, &f->svg, paths->svg, &svg, e);
	return r;
}

void report_files_done(struct report_files *f)
{
	outfile_done(&f->html);
	outfile_done(&f->svg);
}

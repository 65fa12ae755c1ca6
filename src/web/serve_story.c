/* SPDX-License-Identifier: MIT
 *
 * The story of one run for its page: what `report --html` puts into a file, and whether it goes on.
 */
#include "web/serve_make.h"

#include "base/auto.h"
#include "base/err.h"
#include "base/json.h"
#include "explain/verdict.h"
#include "record/reader.h"
#include "web/story.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* As much as a report's file holds beside its script: what a page draws without a pause. */
enum { STORY_MOST = 350000 };

bool record_stamp_of(const char *path, struct record_stamp *ret)
{
	static const char *const sides[] = { "", "-wal" };
	char name[PATH_MAX + 8];
	bool there = false;

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < 2; i++) {
		struct stat st;

		snprintf(name, sizeof(name), "%s%s", path, sides[i]);
		if (stat(name, &st) < 0)
			continue;
		ret->changed_ns[i] = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		ret->bytes[i] = st.st_size;
		if (i == 0) {
			ret->file = (uint64_t)st.st_ino;
			there = true;
		}
	}
	return there;
}

bool record_stamp_same(const struct record_stamp *a, const struct record_stamp *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

int serve_find(const char *id, char *ret_path, size_t size, struct err *e)
{
	struct store_list l = { 0 };
	int r = store_list(&l, e), found = -ENOENT;

	if (r < 0)
		return r;
	for (size_t i = l.rows.n; i-- > 0 && found < 0;) {
		if (strcmp(l.rows.v[i].id, id) != 0)
			continue;
		snprintf(ret_path, size, "%s", l.rows.v[i].path);
		found = 0;
	}
	store_list_done(&l);
	return found < 0 ? err_set(e, -ENOENT, "there is no run '%s' (any more)", id) : 0;
}

static int put_story(const struct window *w, const struct verdict *v, struct buf *out)
{
	int r = -EFBIG;

	for (unsigned level = 0; level < STORY_LEVELS && r == -EFBIG; level++) {
		auto_done(buf) struct buf json = { 0 };
		struct story s;

		r = story_take(w, v, level, &s);
		if (r < 0)
			return r;
		story_json(&s, &json);
		story_done(&s);
		if (!buf_ok(&json))
			return -ENOMEM;
		r = json.len > STORY_MOST && level + 1 < STORY_LEVELS ? -EFBIG : 0;
		if (r == 0)
			buf_put(out, json.data, json.len);
	}
	return r;
}

static int put_record(struct record *record, bool *ret_live, struct buf *out)
{
	struct window w = record_window(record, 0, 0);
	auto_done(verdict) struct verdict v = { 0 };
	const struct run_info *run = record_run(record);
	auto_done(buf) struct buf story = { 0 };
	struct json j;
	int r = explain(&w, &v);

	if (r == 0)
		r = put_story(&w, &v, &story);
	if (r < 0)
		return r;
	*ret_live = run->state == RUN_GOING;
	json_init(&j, out, false);
	json_begin(&j, '{');
	json_key_bool(&j, "live", *ret_live);
	json_key_str(&j, "state", run_state_name(run->state));
	json_key_int(&j, "bytes", record_bytes(record));
	if (record_remark(record)[0])
		json_key_str(&j, "remark", record_remark(record));
	json_key(&j, "story");
	json_raw(&j, buf_text(&story), story.len);
	json_end(&j, '}');
	return buf_ok(out) ? 0 : -ENOMEM;
}

int serve_story(const char *path, bool *ret_live, struct buf *out, struct err *e)
{
	struct record *record = NULL;
	char why[80];
	int r = record_open(path, &record, e);

	if (r < 0)
		return r;
	r = put_record(record, ret_live, out);
	record_close(record);
	return r < 0 ? err_set(e, r, "this run cannot be explained: %s",
			       err_name(r, why, sizeof(why)))
		     : 0;
}

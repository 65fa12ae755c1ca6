/* SPDX-License-Identifier: MIT
 *
 * The desk and its thread, over a folder of runs of its own in which nothing is a run.
 */
#include "../unit.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "web/serve_desk.h"
#include "web/serve_make.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

enum { PATIENCE_MS = 60000 };

static char folder[] = "/tmp/spotter-desk-XXXXXX";

static void put_file(const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	fclose(f);
}

static int begin(void **state)
{
	(void)state;
	return mkdtemp(folder) && setenv("SPOTTER_DIR", folder, 1) == 0 ? 0 : -1;
}

static int end(void **state)
{
	static const char *const files[] = { "20200101-000000-aaaa.spot",
					     "20200101-000000-bbbb.spot" };
	char path[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		(void)unlink(path);
	}
	return rmdir(folder);
}

/* What the desk has to say about an item once it has looked for it once more. */
static struct desk_view made(struct desk *d, int item, uint64_t before)
{
	struct pollfd p = { .fd = desk_fd(d), .events = POLLIN };
	struct desk_view v;

	for (;;) {
		desk_look(d, item, &v);
		if (v.made > before)
			return v;
		desk_give_back(d, v.paper);
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		desk_heard(d);
	}
}

static void the_list(void **state)
{
	struct desk *d = NULL;
	struct desk_view v, w;
	uint64_t version;
	int item;

	(void)state;
	assert_int_equal(desk_open(&d, NULL), 0);
	item = desk_take(d, "");
	assert_int_equal(desk_take(d, ""), item); /* a second viewer of the same */
	v = made(d, item, 0);
	assert_int_equal(v.status, 200);
	assert_true(v.live && v.version);
	assert_memory_equal(v.paper->text, "id: ", 4);
	assert_memory_equal(v.paper->text + v.paper->json, "{\"schema\":\"spotter.serve.runs/1\"",
			    32);
	assert_memory_equal(v.paper->text + v.paper->n - 2, "\n\n", 2);
	version = v.version;
	/* Nothing has changed: it is the same. */
	w = made(d, item, v.made);
	assert_int_equal(w.version, version);
	assert_ptr_equal(w.paper, v.paper);
	desk_give_back(d, w.paper);
	/* Then something has. The old one stays with those who have it. */
	put_file("20200101-000000-aaaa.spot", "nonsense");
	for (w = v, w.paper = NULL; w.version == version;) {
		desk_give_back(d, w.paper);
		w = made(d, item, w.made);
	}
	assert_true(w.version > version);
	assert_non_null(memmem(w.paper->text, w.paper->n, "20200101-000000-aaaa", 20));
	assert_null(memmem(v.paper->text, v.paper->n, "20200101-000000-aaaa", 20));
	desk_give_back(d, w.paper);
	desk_give_back(d, v.paper);
	desk_leave(d, item);
	desk_leave(d, item);
	desk_close(d);
}

static void runs_that_are_none(void **state)
{
	struct desk *d = NULL;
	struct desk_view v;
	int gone, broken;

	(void)state;
	put_file("20200101-000000-bbbb.spot", "nonsense");
	assert_int_equal(desk_open(&d, NULL), 0);
	gone = desk_take(d, "20200101-000000-cccc");
	broken = desk_take(d, "20200101-000000-bbbb");
	assert_true(gone >= 0 && broken >= 0 && gone != broken);
	v = made(d, gone, 0);
	assert_int_equal(v.status, 404);
	assert_null(v.paper);
	assert_non_null(strstr(v.why, "there is no run"));
	v = made(d, broken, 0);
	assert_int_equal(v.status, 500);
	assert_true(v.why[0] && !v.live);
	desk_leave(d, gone);
	desk_leave(d, broken);
	desk_close(d);
}

/* There is room for as many as there can be viewers; of those that nobody has open a few are kept. */
static void room(void **state)
{
	struct desk *d = NULL;
	char name[40];
	int items[DESK_ITEMS], n = 0, again;

	(void)state;
	assert_int_equal(desk_open(&d, NULL), 0);
	for (; n < DESK_ITEMS; n++) {
		snprintf(name, sizeof(name), "run-%d", n);
		items[n] = desk_take(d, name);
		if (items[n] < 0)
			break;
	}
	assert_int_equal(n, DESK_ITEMS - 1); /* one is the list's */
	assert_int_equal(items[n], -EBUSY);
	assert_true(desk_take(d, "") >= 0);
	desk_leave(d, items[7]);
	/* Not while it is being made. */
	for (int ms = 0; (again = desk_take(d, "another")) == -EBUSY && ms < PATIENCE_MS; ms += 10)
		(void)poll(NULL, 0, 10);
	assert_int_equal(again, items[7]);
	desk_close(d);
}

static void stamps(void **state)
{
	struct record_stamp a, b;
	char path[200];

	(void)state;
	snprintf(path, sizeof(path), "%s/20200101-000000-aaaa.spot", folder);
	put_file("20200101-000000-aaaa.spot", "x");
	assert_true(record_stamp_of(path, &a));
	assert_true(record_stamp_of(path, &b) && record_stamp_same(&a, &b));
	put_file("20200101-000000-aaaa.spot", "xy");
	assert_true(record_stamp_of(path, &b));
	assert_false(record_stamp_same(&a, &b));
	snprintf(path, sizeof(path), "%s/nothing", folder);
	assert_false(record_stamp_of(path, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_list),
		cmocka_unit_test(runs_that_are_none),
		cmocka_unit_test(room),
		cmocka_unit_test(stamps),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

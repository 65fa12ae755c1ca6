/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "stack_source.h"

#define HEAD                                                                   \
	"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"," \
	"\"exporter\":\"spotter " SPOTTER_VERSION "\",\"name\":\"train?.py\"," \
	"\"activeProfileIndex\":0,\"shared\":{\"frames\":["

static void whole_file(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	stack_source_write(sink_by_name("speedscope"), &out);
	assert_string_equal(
	    buf_text(&out), HEAD
	    "{\"name\":\"<module>\",\"file\":\"/home/u/train.py\",\"line\":88},"
	    "{\"name\":\"train\",\"file\":\"/home/u/train.py\",\"line\":41},"
	    "{\"name\":\"memcpy [libc.so.6]\",\"file\":\"/lib/libc.so.6\"},"
	    "{\"name\":\"[libm.so.6]\",\"file\":\"/lib/libm.so.6\"},"
	    "{\"name\":\"Queue.get\",\"file\":\"/usr/lib/python3.11/multiprocessing/__init__.py\","
	    "\"line\":102},"
	    "{\"name\":\"[waiting: pipe]\"},{\"name\":\"[waiting: lock]\"},"
	    "{\"name\":\"[waiting: poll socket]\"},{\"name\":\"[not proven]\"},"
	    "{\"name\":\"[queued for a CPU]\"},{\"name\":\"[no Python code]\"},"
	    "{\"name\":\"[waiting: sleep]\"},"
	    "{\"name\":\"f;??\\\"x\\\" 12\",\"file\":\"/d;r/e??;.py\"},{\"name\":\"[unknown]\"},"
	    "{\"name\":\"[state not known]\"},{\"name\":\"[waiting: gpu driver]\"},"
	    "{\"name\":\"[no stack]\"}]},"
	    "\"profiles\":["
	    "{\"type\":\"sampled\",\"name\":\"python3 (4711), main thread\",\"unit\":\"seconds\","
	    "\"startValue\":0,\"endValue\":1.500000001,"
	    "\"samples\":[[0,1],[0,1,2,3],[0,1,4,5],[0,1,4,7],[0,1,8,9],[8]],"
	    "\"weights\":[0.6,0.2,0.450000001,0.15,0.06,0.04]},"
	    "{\"type\":\"sampled\",\"name\":\"python3 (4711), pt_data_pin (4718)\","
	    "\"unit\":\"seconds\",\"startValue\":0,\"endValue\":1.1,"
	    "\"samples\":[[6],[10,11]],\"weights\":[1,0.1]},"
	    "{\"type\":\"sampled\",\"name\":\"a;b??[2J 7 (4720), main thread\","
	    "\"unit\":\"seconds\",\"startValue\":0,\"endValue\":0.2,"
	    "\"samples\":[[12,13]],\"weights\":[0.2]},"
	    "{\"type\":\"sampled\",\"name\":\"[unknown process], [unknown thread 99]\","
	    "\"unit\":\"seconds\",\"startValue\":0,\"endValue\":0.2,"
	    "\"samples\":[[8,14],[15],[16]],\"weights\":[0.1,0.05,0.05]}]}\n");
}

/* More than one part: the same file, whatever the size of the parts. */
static void in_parts(void **state)
{
	enum { STACKS = 60000 };
	const struct sink_type *sink = sink_by_name("speedscope");
	auto_done(buf) struct buf part = { 0 }, whole = { 0 };
	static struct stack_row rows[STACKS];
	struct stack_source s;
	void *memory = calloc(1, sink->state_size);
	unsigned parts = 0, depth = 0;
	int more;

	(void)state;
	stack_source_make(&s);
	assert_non_null(memory);
	struct sink_source src = { .run = &s.run, .entities = &s.entities, .book = &s.book };
	for (unsigned i = 0; i < STACKS; i++)
		rows[i] = (struct stack_row){ .entity = MAIN + i % 2,
					      .node = i % 3 ? s.train : s.memcpy_,
					      .kind = WAIT_RUNNING,
					      .weight_ns = MS };
	assert_int_equal(
	    sink->stack(memory, &src, &(struct stack_slice){ 0, 1, rows, STACKS }, &part), 0);
	do {
		more = sink->end(memory, &src, &part);
		parts++;
		assert_true(part.len < 300000);
		buf_put(&whole, part.data, part.len);
		buf_reset(&part);
	} while (more > 0);
	assert_int_equal(more, 0);
	assert_true(parts > 1);
	for (size_t i = 0; i < whole.len; i++)
		depth += whole.data[i] == '[' || whole.data[i] == '{'   ? 1u
			 : whole.data[i] == ']' || whole.data[i] == '}' ? -1u
									: 0u;
	assert_int_equal(depth, 0);
	assert_non_null(strstr(buf_text(&whole), "\"endValue\":30,"));
	assert_null(strstr(buf_text(&whole), ",,"));
	assert_null(strstr(buf_text(&whole), "]["));
	sink->done(memory);
	free(memory);
	stack_source_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file),
		cmocka_unit_test(in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

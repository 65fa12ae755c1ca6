/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/auto.h"
#include "source.h"

static void whole_file(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	source_write(sink_by_name("jsonl"), &out);
	assert_string_equal(
	    buf_text(&out),
	    "{\"type\":\"run\",\"schema\":\"spotter.samples/1\",\"id\":\"20231114-221320-0001\","
	    "\"name\":\"train\",\"argv\":[\"python\",\"train \\\"it\\\".py\"],"
	    "\"started\":\"2023-11-14T22:13:20.000Z\",\"duration_s\":2.5,\"state\":\"ended\","
	    "\"exit\":{\"code\":3},\"hz\":10}\n"
	    "{\"type\":\"entity\",\"id\":16,\"kind\":\"process\","
	    "\"name\":\"a,\\\"b\\\"\\u001b[2J\\u009b\",\"key\":42,\"detail\":\"python train.py\","
	    "\"born\":0}\n"
	    "{\"type\":\"entity\",\"id\":17,\"kind\":\"cpu\",\"name\":\"cpu0\",\"key\":0,\"born\":"
	    "0}\n"
	    "{\"type\":\"sample\",\"t\":0.1,\"entity\":16,\"metric\":\"proc.cpu\",\"value\":0.1}\n"
	    "{\"type\":\"sample\",\"t\":0.1,\"entity\":17,\"metric\":\"core.frequency\","
	    "\"value\":2400000000}\n"
	    "{\"type\":\"event\",\"t\":1,\"kind\":\"oom_kill\",\"entity\":16,\"value\":9,"
	    "\"text\":\"killed \\\"it\\\"\"}\n"
	    "{\"type\":\"sample\",\"t\":1.1,\"entity\":99,\"metric\":\"newer.metric\","
	    "\"value\":0.3333333333333333}\n"
	    "{\"type\":\"end\",\"samples\":3}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

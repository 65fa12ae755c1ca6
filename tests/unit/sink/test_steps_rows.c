/* SPDX-License-Identifier: MIT
 *
 * Steps as rows: the table, and the lines of jsonl.
 */
#include "../unit.h"

#include "base/auto.h"
#include "steps_source.h"

static void table(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	steps_source_write(sink_by_name("csv-steps"), &out);
	assert_string_equal(
	    buf_text(&out),
	    "time,seconds,rank,pid,step,step_time,data_wait,batches,loss,cpu_cores,memory,gpu_busy,"
	    "gpu_memory,gpu_power,\"acc,\"\"u\"\"?[2J\",lr\n"
	    "2023-11-14T22:13:21.000Z,1,0,42,1,,,,2.5,,,,,,0.5,\n"
	    "2023-11-14T22:13:21.500Z,1.5,0,42,2,0.5,0.125,,2.25,2,,,,,,\n"
	    "2023-11-14T22:13:24.000Z,4,0,42,3,1,0.25,,1.75,2,,,,,,\n"
	    "2023-11-14T22:13:21.750Z,1.75,1,43,2,0.75,0.5,4,,,,,,,,0.0005\n");
}

static void has(const struct buf *out, const char *line)
{
	if (!strstr(buf_text(out), line))
		fail_msg("no '%s' in\n%s", line, buf_text(out));
}

static void lines(void **state)
{
	auto_done(buf) struct buf out = { 0 };

	(void)state;
	steps_source_write(sink_by_name("jsonl"), &out);
	has(&out, "{\"type\":\"step\",\"t\":1,\"step\":1,\"rank\":0,\"entity\":16,\"loss\":2.5}\n");
	has(&out,
	    "{\"type\":\"step\",\"t\":1.5,\"seconds\":0.5,\"step\":2,\"rank\":0,\"entity\":16,"
	    "\"loss\":2.25,\"data_wait\":0.125,\"cpu_cores\":2}\n");
	has(&out,
	    "{\"type\":\"step\",\"t\":1.75,\"seconds\":0.75,\"step\":2,\"rank\":1,\"entity\":17,"
	    "\"data_wait\":0.5,\"batches\":4}\n");
	has(&out,
	    "{\"type\":\"scalar\",\"t\":1.9,\"step\":2,\"rank\":1,\"entity\":17,\"name\":\"lr\","
	    "\"value\":0.0005}\n");
	has(&out, "{\"type\":\"phase\",\"t\":0.5,\"entity\":16,\"name\":\"epoch\"}\n");
	has(&out, "{\"type\":\"phase\",\"t\":1.5,\"end\":3,\"entity\":16,\"name\":\"evaluate\"}\n");
	has(&out, "{\"type\":\"end\",\"samples\":15,\"steps\":4}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(table), cmocka_unit_test(lines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

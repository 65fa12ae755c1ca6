/* SPDX-License-Identifier: MIT
 *
 * Texts as people see them, against golden files. UPDATE=1 rewrites those: read the difference.
 */
#include "../unit.h"

#include "scenario.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdlib.h>

static void render(const char *path, const struct render_style *style, struct buf *out)
{
	struct scenario s = { 0 };
	struct verdict v = { 0 };
	struct history *h;
	struct window w;

	scenario_load(&s, path);
	h = scenario_play(&s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(explain(&w, &v), 0);
	render_text(&v, style, out);
	verdict_done(&v);
	history_free(h);
	scenario_done(&s);
}

static void golden(const char *name, unsigned width, unsigned lines)
{
	struct render_style style = { .width = width, .max_lines = lines };
	char scenario[512], file[512], have[8192];
	struct buf out;
	size_t n;
	FILE *f;

	buf_init(&out, 0);
	snprintf(scenario, sizeof(scenario), "%s/%s.scn", SCENARIOS, name);
	snprintf(file, sizeof(file), "%s/%s-%u-%u.txt", GOLDEN, name, width, lines);
	render(scenario, &style, &out);
	if (getenv("UPDATE")) {
		f = fopen(file, "we");
		assert_non_null(f);
		fwrite(buf_text(&out), 1, out.len, f);
		fclose(f);
	}
	f = fopen(file, "re");
	if (!f)
		fail_msg("no golden file '%s'", file);
	n = fread(have, 1, sizeof(have) - 1, f);
	fclose(f);
	have[n] = '\0';
	assert_string_equal(buf_text(&out), have);
	buf_done(&out);
}

static void at_the_end_of_run(void **state)
{
	static const char *const names[] = {
		"quota-yes",
		"threads-yes-pools",
		"memory-yes-v2",
		"oom-yes-limit",
		"idle",
		"short",
		"threads-no-as-many",
		"threads-note-make",
		"gpu-no",
		"gpu-lost-yes-hang",
		"gpu-throttled-yes-heat",
		"gpu-shared-yes",
		"gpu-idle-yes-mask",
		"not-on-gpu-yes-masked",
		"gpu-blind",
		"no-workers-yes",
		"few-workers-yes",
		"gil-yes",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		golden(names[i], 80, 12);
		golden(names[i], 100, 12);
	}
}

static void report(void **state)
{
	(void)state;
	golden("quota-yes", 100, 0);
	golden("idle", 100, 0);
	golden("threads-note-make", 100, 0);
	golden("gpu-ghost-yes-zombie", 100, 0);
	golden("gpu-memory-note", 100, 0);
	golden("few-workers-yes", 100, 0);
	golden("python-loop-note", 100, 0);
}

/* Every scenario, width and length: never more lines or columns than asked for. */
static void fits(void **state)
{
	static char paths[SCENARIO_FILES][256];
	size_t n = scenario_list(SCENARIOS, paths, SCENARIO_FILES);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (unsigned width = 40; width <= 160; width += 40)
			for (unsigned lines = 1; lines <= 12; lines += 11) {
				struct render_style style = { .width = width, .max_lines = lines };
				unsigned rows = 0;
				char *line, *save = NULL;
				struct buf out;

				buf_init(&out, 0);
				render(paths[i], &style, &out);
				assert_true(buf_ok(&out));
				assert_null(strchr(buf_text(&out), '\033'));
				assert_null(strstr(buf_text(&out), "nan"));
				for (line = strtok_r(out.data, "\n", &save); line;
				     line = strtok_r(NULL, "\n", &save)) {
					rows++;
					assert_true(text_width(line) <= width);
				}
				assert_in_range(rows, 1, lines);
				buf_done(&out);
			}
}

/* The sentence promised to people who ask what 642 % means. */
static void promised_sentence(void **state)
{
	struct scenario s = { 0 };
	struct verdict v = { 0 };
	struct render_style style = { .width = 200 };
	struct history *h;
	struct window w;
	struct buf out;

	(void)state;
	scenario_parse(&s, "run 100\nexit 0\njob.cpu 0 642\njob.cores_affinity 8\n"
			   "job.cores_allowed 8\ncpu.online 16\n");
	h = scenario_play(&s, M_NONE, 0);
	w = history_window(h, 0);
	assert_int_equal(explain(&w, &v), 0);
	buf_init(&out, 0);
	render_text(&v, &style, &out);
	assert_non_null(strstr(
	    buf_text(&out), "6.42 of 8 cores allowed (80 %), 16 in the machine; `top` calls this "
			    "642 % [limit: affinity]"));
	buf_done(&out);
	verdict_done(&v);
	history_free(h);
	scenario_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_the_end_of_run),
		cmocka_unit_test(report),
		cmocka_unit_test(fits),
		cmocka_unit_test(promised_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

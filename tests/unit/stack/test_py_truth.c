/* SPDX-License-Identifier: MIT
 *
 * Names and lines against what Python itself says, on every Python of the machine: a process blocked
 * in a stack of methods, generators, lambdas, comprehensions, coroutines, calls over several lines and
 * names that are not ASCII, and a thread blocked deep in a recursion over several chunks.
 */
#include "../unit.h"

#include "base/err.h"
#include "base/text.h"
#include "stack/py/py.h"
#include "target.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAMES_MAX 1200

struct truth {
	struct {
		pid_t tid;
		size_t first, n;
	} thread[8];
	size_t threads;
	char frame[FRAMES_MAX][400];
	size_t frames;
};

static struct pythons pythons;

static void truth_read(FILE *f, struct truth *t)
{
	char line[1024];

	t->threads = t->frames = 0;
	while (fgets(line, sizeof(line), f) && line[0] != '.') {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == 'T' && t->threads < 8) {
			t->thread[t->threads].tid = (pid_t)strtol(line + 2, NULL, 10);
			t->thread[t->threads].first = t->frames;
			t->thread[t->threads++].n = 0;
		} else if (line[0] == 'F' && t->threads && t->frames < FRAMES_MAX) {
			text_copy(t->frame[t->frames++], sizeof(t->frame[0]), line + 2);
			t->thread[t->threads - 1].n++;
		}
	}
	assert_int_equal(t->threads, 2);
}

static void compare_thread(const struct py_process *p, const struct py_stacks *s,
			   const struct py_thread *got, const struct truth *t, size_t k)
{
	assert_int_equal(got->status, PY_COMPLETE);
	assert_int_equal(got->n, t->thread[k].n);
	assert_false(got->holds_gil);
	for (uint32_t i = 0; i < got->n; i++) {
		const struct py_frame *frame = &s->frames.v[got->first + i];
		struct py_function f;
		char text[400];

		assert_non_null(py_code(p, frame->code, &f));
		snprintf(text, sizeof(text), "%s\t%s\t%d", f.name, f.file,
			 py_line(p, frame->code, frame->offset));
		assert_string_equal(text, t->frame[t->thread[k].first + i]);
	}
}

static void compare(const struct py_process *p, const struct py_stacks *s, const struct truth *t)
{
	size_t met = 0;

	for (size_t k = 0; k < t->threads; k++)
		for (size_t i = 0; i < s->threads.n; i++)
			if (s->threads.v[i].tid == t->thread[k].tid) {
				compare_thread(p, s, &s->threads.v[i], t, k);
				met++;
			}
	assert_int_equal(met, t->threads);
}

static void check_python(const char *python, const char *depth)
{
	static struct truth truth;
	struct py_process *p = NULL;
	struct py_stacks stacks = { 0 };
	struct py_counts before, after;
	struct target target;
	struct err e = { 0 };

	target_start(&target, python, -1, SCRIPTS "/truth.py", depth, NULL);
	truth_read(target.out, &truth);
	if (py_attach(&p, target.pid, NULL, &e) < 0)
		fail_msg("%s: %s", python, e.text);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(py_sample(p, &stacks), 0);
		compare(p, &stacks, &truth);
	}
	before = py_counts(p);
	for (int i = 0; i < 50; i++)
		assert_int_equal(py_sample(p, &stacks), 0);
	after = py_counts(p);
	/* Steady state: one call a sample (up to 500 single frames in two copies). */
	if (strcmp(depth, "5") == 0)
		assert_int_equal(after.calls - before.calls - (after.late - before.late), 50);
	/* Only a busy machine keeps us from going on in the middle of a reading. */
	assert_int_equal(after.retries - after.late, before.retries - before.late);
	target_end(&target);
	assert_int_equal(py_sample(p, &stacks), -ESRCH);
	py_stacks_done(&stacks);
	py_detach(p);
	print_message("%s: %zu frames of %zu threads agree\n", python, truth.frames, truth.threads);
}

static void test_names_and_lines(void **state)
{
	(void)state;
	if (!pythons.n)
		skip();
	for (size_t i = 0; i < pythons.n; i++)
		check_python(pythons.path[i], "5");
}

static void test_deep(void **state)
{
	(void)state;
	if (!pythons.n)
		skip();
	for (size_t i = 0; i < pythons.n; i++)
		check_python(pythons.path[i], "900");
}

/* Neither its name nor its file is needed. */
static void test_renamed_and_deleted(void **state)
{
	static struct truth truth;
	char folder[] = "/tmp/spotter-test-XXXXXX", copy[64], text[4096];
	struct py_process *p = NULL;
	struct target target;
	struct err e = { 0 };
	FILE *from, *to;
	size_t n;

	(void)state;
	from = fopen("/usr/bin/python3", "re");
	if (!from)
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(copy, sizeof(copy), "%s/trainer", folder);
	to = fopen(copy, "we");
	assert_non_null(to);
	while ((n = fread(text, 1, sizeof(text), from)))
		fwrite(text, 1, n, to);
	fclose(from);
	fclose(to);
	chmod(copy, 0755);
	target_start(&target, copy, -1, SCRIPTS "/truth.py", "5", NULL);
	truth_read(target.out, &truth);
	unlink(copy);
	rmdir(folder);
	if (py_attach(&p, target.pid, NULL, &e) < 0)
		fail_msg("%s", e.text);
	py_detach(p);
	target_end(&target);
}

/* Copies it to folder/bin/python3 without its symbols, its library beside it: false, no strip here. */
static bool strip_copy(const char *python, const char *folder, char copy[PATH_MAX])
{
	char prefix[PATH_MAX], lib[PATH_MAX], path[PATH_MAX];
	int status = 1;
	pid_t pid;

	snprintf(prefix, sizeof(prefix), "%s", python);
	for (int i = 0; i < 2; i++)
		*strrchr(prefix, '/') = '\0';
	snprintf(lib, sizeof(lib), "%.400s/lib", prefix);
	snprintf(path, sizeof(path), "%.200s/lib", folder);
	assert_int_equal(symlink(lib, path), 0);
	snprintf(path, sizeof(path), "%.200s/bin", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(copy, PATH_MAX, "%.200s/bin/python3", folder);
	pid = fork();
	if (pid == 0) {
		execlp("strip", "strip", "-s", "-o", copy, python, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status == 0;
}

static void strip_remove(const char *folder)
{
	static const char *const parts[] = { "/bin/python3", "/lib", "/bin", "" };
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%.200s%s", folder, parts[i]);
		remove(path);
	}
}

static void test_stripped(void **state)
{
	bool done = true;

	(void)state;
	for (size_t i = 0; i < pythons.n && done; i++) {
		char folder[] = "/tmp/spotter-test-XXXXXX", copy[PATH_MAX];

		assert_non_null(mkdtemp(folder));
		done = strip_copy(pythons.path[i], folder, copy);
		if (done)
			check_python(copy, "5");
		strip_remove(folder);
	}
	if (!done || !pythons.n) {
		print_message("no strip, or no Python, here\n");
		skip();
	}
}

static void test_no_python(void **state)
{
	struct py_process *p = NULL;
	struct err e = { 0 };
	pid_t pid;

	(void)state;
	assert_int_equal(py_attach(&p, getpid(), NULL, &e), -ENOENT);
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	e = (struct err){ 0 };
	assert_int_equal(py_attach(&p, pid, NULL, &e), -ESRCH);
	assert_non_null(strstr(e.text, "gone"));
}

static void test_too_old(void **state)
{
	struct py_process *p = NULL;
	struct target target;
	struct err e = { 0 };
	char line[16];

	(void)state;
	if (!pythons.old[0]) {
		print_message("no Python 3 before 3.8 here\n");
		skip();
	}
	target_start(&target, pythons.old, -1, "-c",
		     "import sys; print(1, flush=True); sys.stdin.read()", NULL);
	assert_non_null(fgets(line, sizeof(line), target.out));
	assert_int_equal(py_attach(&p, target.pid, NULL, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "3.8"));
	target_end(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_lines),     cmocka_unit_test(test_deep),
		cmocka_unit_test(test_renamed_and_deleted), cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_no_python),           cmocka_unit_test(test_too_old),
	};

	pythons_find(&pythons);
	if (!pythons.n)
		print_message(
		    "no Python 3.8 or later that this user may run: nothing to compare with\n");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

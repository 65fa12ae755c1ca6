/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "explain/cause.h"
#include "explain/rule.h"

#include <ctype.h>
#include <unistd.h>

static void catalogue(void **state)
{
	size_t n = 0;

	(void)state;
	for (const struct cause *c = causes; c->id; c++, n++) {
		assert_true(c->text[0] && c->family[0]);
		assert_in_range(c->level, 0, 3);
		assert_ptr_equal(cause_find(c->id), c);
		for (const char *p = c->id; *p; p++)
			assert_true(islower((unsigned char)*p) || *p == '_');
		assert_true(strlen(c->text) < 80);
	}
	/* the public list */
	assert_int_equal(n, 53);
	assert_null(cause_find("no_such"));
}

/* A rule is about a known cause, which has a page for people. */
static void rules_have_pages(void **state)
{
	char path[512];
	size_t n = 0;

	(void)state;
	for (; rules[n]; n++) {
		const struct cause *c = cause_find(rules[n]->cause);

		assert_non_null(c);
		assert_true(cause_implemented(c));
		snprintf(path, sizeof(path), "%s/%s.md", CAUSE_PAGES, c->id);
		if (access(path, R_OK) < 0)
			fail_msg("no page '%s'", path);
	}
	assert_true(n >= 4);
	/* and every cause has its rule, if only to say that it cannot be told */
	for (const struct cause *c = causes; c->id; c++)
		if (!cause_implemented(c))
			fail_msg("no rule for '%s'", c->id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(catalogue),
		cmocka_unit_test(rules_have_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

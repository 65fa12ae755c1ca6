/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "base/err.h"

#include <errno.h>

static void first_error_wins(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(err_set(&e, -ENOENT, "no run '%s'", "x"), -ENOENT);
	err_hint(&e, "see '%s'", "spotter runs");
	assert_int_equal(err_set(&e, -EIO, "later"), -EIO);
	err_hint(&e, "another");
	assert_int_equal(e.code, -ENOENT);
	assert_string_equal(e.text, "no run 'x'");
	assert_string_equal(e.hint, "see 'spotter runs'");
}

static void nobody_asked(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, -EIO, "%d", 1), -EIO);
	err_hint(NULL, "%d", 1);
}

static void long_text_is_cut(void **state)
{
	struct err e = { 0 };

	(void)state;
	err_set(&e, -EINVAL, "%0*d", 5000, 7);
	err_hint(&e, "%0*d", 5000, 7);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_int_equal(strlen(e.hint), sizeof(e.hint) - 1);
}

static void names(void **state)
{
	char name[80], tiny[4];

	(void)state;
	assert_string_equal(err_name(-EACCES, name, sizeof(name)), "permission denied");
	assert_string_equal(err_name(ENOENT, name, sizeof(name)), "no such file or directory");
	assert_string_equal(err_name(-EIO, name, sizeof(name)), "input/output error");
	assert_non_null(strstr(err_name(-99999, name, sizeof(name)), "99999"));
	assert_string_equal(err_name(-EACCES, tiny, sizeof(tiny)), "per");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_error_wins),
		cmocka_unit_test(nobody_asked),
		cmocka_unit_test(long_text_is_cut),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

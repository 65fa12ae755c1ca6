/* SPDX-License-Identifier: MIT
 *
 * The table of topics: each row has an example that it takes, and frames of real programs are about what
 * they should be.
 */
#include "../unit.h"

#include "explain/ledger/topics.h"

static struct place python(const char *file, const char *function, const char *source)
{
	return (struct place){ .kind = PLACE_PYTHON,
			       .file = file,
			       .function = function,
			       .source = source,
			       .line = 7 };
}

/* The first alternative with its stars filled. */
static void example(const char *text, char *buf, size_t size)
{
	snprintf(buf, size, "%.*s", (int)strcspn(text, "|"), text);
	for (char *p = buf; *p; p++)
		*p = *p == '*' ? 'Q' : *p;
}

static void every_row_has_an_example(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_topic_rules; i++) {
		const struct topic_rule *r = &topic_rules[i];
		char file[200], name[200], path[400], line[400];
		struct place p = { .kind = r->by == PHASE_BY_NATIVE ? PLACE_NATIVE : PLACE_PYTHON,
				   .file = path,
				   .function = name,
				   .source = line };

		if (r->by != PHASE_BY_NATIVE)
			assert_null(strchr(r->file, '*')); /* files have no stars */
		example(r->file, file, sizeof(file));
		example(r->name, name, sizeof(name));
		snprintf(path, sizeof(path), "/usr/lib/python3.11/site-packages/%s%s", file,
			 *file && file[strlen(file) - 1] == '/' ? "some.py" : "");
		snprintf(line, sizeof(line), "y = x%s%s)", *name == '.' ? "" : " + ", name);
		if (!*name)
			snprintf(name, sizeof(name), "zzz");
		if (!(topics_match(&p, r->by == PHASE_BY_LINE) & TOPIC_BIT(r->topic)))
			fail_msg("row %zu (%s, %s) does not take its own example", i, r->file,
				 r->name);
	}
}

static void every_topic_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < TOPICS; i++)
		assert_true(strlen(topic_name((enum topic)i)) > 1);
	assert_true(TOPICS <= 32);
}

static void real_frames(void **state)
{
	struct place p = python("/usr/lib/python3.11/gzip.py", "_GzipReader.read", "");

	(void)state;
	assert_int_equal(topics_match(&p, false), TOPIC_BIT(TOPIC_DECOMPRESS));
	p = python("/home/u/data.py", "load", "raw = zlib.decompress(block)");
	assert_int_equal(topics_match(&p, false), 0);
	assert_int_equal(topics_match(&p, true), TOPIC_BIT(TOPIC_DECOMPRESS));
	p = python("/home/u/data.py", "load", "# zlib.decompress(block)");
	assert_int_equal(topics_match(&p, true), 0);
	p = python("/home/u/train.py", "train", "fingerprint(model)");
	assert_int_equal(topics_match(&p, true), 0);
	p = python("/home/u/train.py", "validate", "out = model(x)");
	assert_int_equal(topics_match(&p, false), TOPIC_BIT(TOPIC_EVALUATE));
	/* numpy reads the head of a file by it */
	p = python("/usr/lib/python3.11/tokenize.py", "_tokenize", "");
	assert_int_equal(topics_match(&p, false), 0);
	p = python("/usr/lib/python3/dist-packages/words/split.py", "tokenize", "");
	assert_int_equal(topics_match(&p, false), TOPIC_BIT(TOPIC_TOKENIZE));
	p = python("/home/u/rl.py", "valid_moves", "out = model(x)");
	assert_int_equal(topics_match(&p, false), 0);
	p = python("/home/u/train.py", "train", "if kl > limit:");
	assert_int_equal(topics_match(&p, true), TOPIC_BIT(TOPIC_READ_BACK));
	p = python("/home/u/train.py", "train", "out = net(x) if plain else net(x, m)");
	assert_int_equal(topics_match(&p, true), 0);
	p = python("/home/u/logging/train.py", "main", "");
	assert_int_equal(topics_match(&p, false), 0);
	p = python("/usr/lib/python3/dist-packages/torch/serialization.py", "_save", "");
	assert_int_equal(topics_match(&p, false), TOPIC_BIT(TOPIC_CHECKPOINT));
	/* Pillow decodes, and does much else */
	p = python("/usr/lib/python3/dist-packages/PIL/ImageFile.py", "ImageFile.load", "");
	assert_int_equal(topics_match(&p, false), TOPIC_BIT(TOPIC_DECODE));
	p = python("/usr/lib/python3/dist-packages/PIL/ImageFilter.py", "GaussianBlur.filter", "");
	assert_int_equal(topics_match(&p, false), 0);
	p = (struct place){ .kind = PLACE_NATIVE,
			    .file = "/usr/lib/python3/dist-packages/PIL/_imaging.so",
			    .function = "ImagingHorizontalBoxBlur",
			    .source = "" };
	assert_int_equal(topics_match(&p, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_has_an_example),
		cmocka_unit_test(every_topic_has_a_name),
		cmocka_unit_test(real_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

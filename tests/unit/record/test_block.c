/* SPDX-License-Identifier: MIT */
#include "../unit.h"

#include "random.h"
#include "record/block.h"
#include "record/merge.h"

#include <errno.h>
#include <stdlib.h>

enum { TICKS_MAX = 300, SERIES_MAX = 12 };

struct model {
	int64_t ticks[TICKS_MAX];
	int n_ticks;
	struct {
		uint64_t id;
		bool held;
		int64_t base;
		int n;
		int tick[TICKS_MAX];
		int64_t raw[TICKS_MAX];
		uint8_t tokens[TICKS_MAX * BLOCK_TOKEN_MAX];
		size_t bytes;
		size_t at[TICKS_MAX + 1]; /* where the token of each sample begins */
	} series[SERIES_MAX];
	int n_series;
};

static int64_t any_value(struct random *r, int64_t before)
{
	switch (random_below(r, 8)) {
	case 0:
		return INT64_MIN;
	case 1:
		return INT64_MAX;
	case 2:
		return (int64_t)random_next(r);
	case 3:
		return 0; /* a reset */
	default:
		return (int64_t)((uint64_t)before + random_below(r, 1000) - 200);
	}
}

static void make_model(struct model *m, struct random *r)
{
	int64_t t = (int64_t)random_below(r, 1u << 30);

	memset(m, 0, sizeof(*m));
	m->n_ticks = 1 + (int)random_below(r, TICKS_MAX - 1);
	for (int i = 0; i < m->n_ticks; i++)
		m->ticks[i] = t += 1 + (int64_t)random_below(r, 1u << (random_below(r, 31) + 1));
	m->n_series = (int)random_below(r, SERIES_MAX + 1);
	for (int s = 0; s < m->n_series; s++) {
		unsigned dense = (unsigned)random_below(r, 4);
		int before = -1;

		m->series[s].id = random_next(r) >> random_below(r, 60);
		m->series[s].held = random_below(r, 2);
		m->series[s].base = m->series[s].held ? any_value(r, 0) : 0;
		int64_t value = m->series[s].base;

		for (int i = 0; i < m->n_ticks; i++) {
			int n = m->series[s].n;

			if (dense == 0 || (dense < 3 && random_below(r, 6) != 0))
				continue;
			m->series[s].at[n] = m->series[s].bytes;
			m->series[s].tick[n] = i;
			m->series[s].raw[n] = any_value(r, value);
			m->series[s].bytes +=
			    block_token(m->series[s].tokens + m->series[s].bytes,
					(uint32_t)(i - before), value, m->series[s].raw[n]);
			value = m->series[s].raw[n];
			before = i;
			m->series[s].n++;
		}
		m->series[s].at[m->series[s].n] = m->series[s].bytes;
	}
}

static void encode(const struct model *m, struct block_codec *c, const void **blob, size_t *n)
{
	block_begin(c, m->ticks, (size_t)m->n_ticks);
	for (int s = 0; s < m->n_series; s++)
		block_put(c,
			  &(struct block_head){ .id = m->series[s].id,
						.back = 1,
						.held = m->series[s].held,
						.base = m->series[s].base },
			  m->series[s].tokens, m->series[s].bytes);
	assert_int_equal(block_end(c, blob, n), 0);
}

static void test_round_trip(void **state)
{
	struct model *m = malloc(sizeof(*m));
	struct block_codec codec = { 0 };
	struct block_reader reader = { 0 };
	struct random r = { 1 };

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct block_series series;
		struct block_cursor c;
		const void *blob;
		size_t n;

		make_model(m, &r);
		encode(m, &codec, &blob, &n);
		assert_int_equal(block_open(&reader, blob, n), 0);
		assert_int_equal(reader.ticks.n, m->n_ticks);
		assert_memory_equal(reader.ticks.v, m->ticks, sizeof(int64_t) * (size_t)m->n_ticks);
		for (int s = 0; s < m->n_series; s++) {
			assert_true(block_next(&reader, &series));
			assert_int_equal(series.head.id, m->series[s].id);
			assert_int_equal(series.head.held, m->series[s].held);
			assert_int_equal(series.head.base, m->series[s].base);
			block_samples(&reader, &series, &c);
			for (int i = 0; i < m->series[s].n; i++) {
				assert_int_equal(block_sample(&c), m->series[s].tick[i]);
				assert_int_equal(c.raw, m->series[s].raw[i]);
			}
			assert_int_equal(block_sample(&c), -1);
		}
		assert_false(block_next(&reader, &series));
		assert_false(reader.damaged);
	}
	block_codec_done(&codec);
	block_reader_done(&reader);
	free(m);
}

/* A block of the ticks from `first` on, made of the tokens as they are: only back and base differ. */
static void test_slices_are_the_same_tokens(void **state)
{
	struct model *m = malloc(sizeof(*m));
	struct block_codec codec = { 0 };
	struct block_reader reader = { 0 };
	struct random r = { 2 };

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct block_series series;
		struct block_cursor c;
		const void *blob;
		size_t n;
		int first;

		make_model(m, &r);
		first = (int)random_below(&r, (uint64_t)m->n_ticks);
		block_begin(&codec, m->ticks + first, (size_t)(m->n_ticks - first));
		for (int s = 0; s < m->n_series; s++) {
			int k = 0;

			while (k < m->series[s].n && m->series[s].tick[k] < first)
				k++;
			block_put(
			    &codec,
			    &(struct block_head){
				.id = m->series[s].id,
				.back = (uint32_t)(first - (k ? m->series[s].tick[k - 1] : -1)),
				.held = k || m->series[s].held,
				.base = k ? m->series[s].raw[k - 1] : m->series[s].base },
			    m->series[s].tokens + m->series[s].at[k],
			    m->series[s].bytes - m->series[s].at[k]);
		}
		assert_int_equal(block_end(&codec, &blob, &n), 0);
		assert_int_equal(block_open(&reader, blob, n), 0);
		for (int s = 0; s < m->n_series; s++) {
			assert_true(block_next(&reader, &series));
			block_samples(&reader, &series, &c);
			for (int i = 0; i < m->series[s].n; i++) {
				if (m->series[s].tick[i] < first)
					continue;
				assert_int_equal(block_sample(&c), m->series[s].tick[i] - first);
				assert_int_equal(c.raw, m->series[s].raw[i]);
			}
			assert_int_equal(block_sample(&c), -1);
		}
		assert_false(reader.damaged);
	}
	block_codec_done(&codec);
	block_reader_done(&reader);
	free(m);
}

static void read_through(struct block_reader *reader, const void *blob, size_t n)
{
	struct block_series series;
	struct block_cursor c;

	if (block_open(reader, blob, n) < 0) {
		assert_true(reader->damaged);
		assert_false(block_next(reader, &series));
		return;
	}
	while (block_next(reader, &series)) {
		int last = -1, i;

		block_samples(reader, &series, &c);
		while ((i = block_sample(&c)) >= 0) {
			assert_true(i > last && (size_t)i < reader->ticks.n);
			last = i;
		}
	}
}

static void test_damage_is_survived(void **state)
{
	struct model *m = malloc(sizeof(*m));
	struct block_codec codec = { 0 };
	struct block_reader reader = { 0 };
	struct random r = { 3 };

	(void)state;
	for (int round = 0; round < 300; round++) {
		const void *blob;
		uint8_t *bad;
		size_t n;

		make_model(m, &r);
		encode(m, &codec, &blob, &n);
		bad = malloc(n);
		memcpy(bad, blob, n);
		for (int i = 0; i < 8; i++)
			bad[random_below(&r, n)] ^= (uint8_t)(1u << random_below(&r, 8));
		read_through(&reader, bad, n);
		read_through(&reader, blob, random_below(&r, n));
		free(bad);
		/* Damage below the compression, where no checksum can see it. */
		for (int i = 0; i < 4; i++) {
			struct buf *section = &codec.sections[i];

			if (section->len)
				section->data[random_below(&r, section->len)] ^=
				    (char)(1u << random_below(&r, 8));
		}
		assert_int_equal(block_end(&codec, &blob, &n), 0);
		read_through(&reader, blob, n);
	}
	assert_int_equal(block_open(&reader, "", 0), -EBADMSG);
	assert_int_equal(block_open(&reader, "hello, this is text", 19), -EBADMSG);
	block_codec_done(&codec);
	block_reader_done(&reader);
	free(m);
}

static bool even_is_counter(uint64_t id)
{
	return id % 2 == 0;
}

/* Growth as the reader counts it. */
static double growth(const int64_t *v, int n)
{
	double sum = 0;

	for (int i = 1; i < n; i++)
		sum += v[i] >= v[i - 1] ? (double)(v[i] - v[i - 1]) : (double)v[i];
	return sum;
}

enum { THIN_TICKS = 600 };

/* A minute of two series: a counter that is reset now and then (id 0), and a gauge (id 1). */
struct minute {
	int64_t ticks[THIN_TICKS], values[2][THIN_TICKS + 1];
};

static void make_minute(struct minute *m, struct random *r, struct block_codec *codec,
			const void **blob, size_t *n)
{
	static uint8_t tokens[2][THIN_TICKS * BLOCK_TOKEN_MAX];
	size_t bytes[2] = { 0 };

	for (int i = 0; i < THIN_TICKS; i++)
		m->ticks[i] = i * 100000000ll + (int64_t)random_below(r, 1000000);
	block_begin(codec, m->ticks, THIN_TICKS);
	for (unsigned s = 0; s < 2; s++) {
		m->values[s][0] = 1000;
		for (int i = 0; i < THIN_TICKS; i++) {
			int64_t before = m->values[s][i];
			bool reset = random_below(r, 100) == 0;

			m->values[s][i + 1] = reset ? (int64_t)random_below(r, 10)
						    : before + (int64_t)random_below(r, 50);
			bytes[s] +=
			    block_token(tokens[s] + bytes[s], 1, before, m->values[s][i + 1]);
		}
		block_put(codec,
			  &(struct block_head){ .id = s, .back = 1, .held = true, .base = 1000 },
			  tokens[s], bytes[s]);
	}
	assert_int_equal(block_end(codec, blob, n), 0);
}

/* Every kept sample is one that was there, at its time. */
static void check_was_there(const struct minute *m, int s, int64_t t, int64_t raw)
{
	for (int i = 0; i < THIN_TICKS; i++)
		if (m->ticks[i] == t) {
			assert_int_equal(m->values[s][i + 1], raw);
			return;
		}
	fail_msg("no tick at %lld", (long long)t);
}

static void check_thinned(const struct minute *m, struct block_reader *reader, int s)
{
	int64_t kept[THIN_TICKS + 1];
	struct block_series series;
	struct block_cursor c;
	int n = 0, i, seconds[60] = { 0 };

	assert_true(block_next(reader, &series));
	kept[n++] = series.head.base;
	block_samples(reader, &series, &c);
	while ((i = block_sample(&c)) >= 0) {
		kept[n++] = c.raw;
		seconds[reader->ticks.v[i] / 1000000000]++;
		check_was_there(m, s, reader->ticks.v[i], c.raw);
	}
	for (int sec = 0; sec < 60; sec++)
		assert_in_range(seconds[sec], 1, s == 0 ? 10 : 1);
	assert_int_equal(kept[n - 1], m->values[s][THIN_TICKS]);
	if (s == 0)
		assert_true(growth(kept, n) == growth(m->values[s], THIN_TICKS + 1));
}

static void test_thinning_keeps_growth_and_the_last_of_each_second(void **state)
{
	struct block_codec codec = { 0 }, out = { 0 };
	struct thin thin = { 0 };
	struct block_reader reader = { 0 };
	struct minute *m = calloc(1, sizeof(*m));
	struct random r = { 4 };

	(void)state;
	for (int round = 0; round < 50; round++) {
		const void *blob, *thinned;
		size_t n, thinned_n;

		make_minute(m, &r, &codec, &blob, &n);
		assert_int_equal(
		    thin_block(&thin, blob, n, 0, even_is_counter, &out, &thinned, &thinned_n), 0);
		assert_true(thinned_n < n / 3);
		assert_int_equal(block_open(&reader, thinned, thinned_n), 0);
		check_thinned(m, &reader, 0);
		check_thinned(m, &reader, 1);
	}
	block_codec_done(&codec);
	block_codec_done(&out);
	thin_done(&thin);
	block_reader_done(&reader);
	free(m);
}

/* The block of one tick of the model. */
static void encode_tick(const struct model *m, int i, struct block_codec *codec, const void **blob,
			size_t *n)
{
	block_begin(codec, &m->ticks[i], 1);
	for (int s = 0; s < m->n_series; s++) {
		bool held = m->series[s].held;
		int64_t before = m->series[s].base;
		uint8_t token[BLOCK_TOKEN_MAX];
		int k = 0;

		while (k < m->series[s].n && m->series[s].tick[k] < i)
			k++;
		if (k == m->series[s].n || m->series[s].tick[k] != i)
			continue;
		if (k) {
			held = true;
			before = m->series[s].raw[k - 1];
		}
		block_put(codec,
			  &(struct block_head){
			      .id = (uint64_t)s, .back = 1, .held = held, .base = before },
			  token, block_token(token, 1, held ? before : 0, m->series[s].raw[k]));
	}
	assert_int_equal(block_end(codec, blob, n), 0);
}

static void check_merged(const struct model *m, struct block_reader *reader)
{
	struct block_series series;
	struct block_cursor c;
	int missing = 0;

	for (int s = 0; s < m->n_series; s++)
		missing += m->series[s].n > 0;
	while (block_next(reader, &series)) {
		int s = (int)series.head.id;

		missing--;
		assert_int_equal(series.head.held, m->series[s].held);
		assert_int_equal(series.head.base, m->series[s].base);
		block_samples(reader, &series, &c);
		for (int i = 0; i < m->series[s].n; i++) {
			assert_int_equal(block_sample(&c), m->series[s].tick[i]);
			assert_int_equal(c.raw, m->series[s].raw[i]);
		}
		assert_int_equal(block_sample(&c), -1);
	}
	assert_int_equal(missing, 0);
}

/* Tick by tick, as roll-ups come. */
static void test_merging_gives_back_the_whole(void **state)
{
	struct model *m = malloc(sizeof(*m));
	struct block_codec codec = { 0 };
	struct block_reader reader = { 0 };
	struct random r = { 5 };

	(void)state;
	for (int round = 0; round < 100; round++) {
		struct merge merge = { 0 };
		const void *blob;
		size_t n;

		make_model(m, &r);
		for (int i = 0; i < m->n_ticks; i++) {
			encode_tick(m, i, &codec, &blob, &n);
			assert_int_equal(merge_add(&merge, blob, n), 0);
		}
		assert_int_equal(merge_end(&merge, &codec, &blob, &n), 0);
		assert_int_equal(block_open(&reader, blob, n), 0);
		check_merged(m, &reader);
		merge_done(&merge);
	}
	block_codec_done(&codec);
	block_reader_done(&reader);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_slices_are_the_same_tokens),
		cmocka_unit_test(test_damage_is_survived),
		cmocka_unit_test(test_thinning_keeps_growth_and_the_last_of_each_second),
		cmocka_unit_test(test_merging_gives_back_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

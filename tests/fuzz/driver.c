/* SPDX-License-Identifier: MIT
 *
 * main() of a fuzz target in an ordinary build: every file of the corpus folders named on the
 * command line as it is, then MUTATIONS changed copies shared among them. No clock and no random
 * source: the same build and corpus always run the same inputs, so a failure is a failure tomorrow.
 * The input that brought the target down is written to crash-TARGET in the working folder.
 *
 *	fuzz_scan tests/fuzz/corpus/scan            as in the test suite
 *	fuzz_scan -n 1000000 tests/fuzz/corpus/scan more mutations
 *	fuzz_scan crash-fuzz_scan                   one input again
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MUTATIONS 20000
#define INPUT_MAX (1 << 20)  /* a corpus file */
#define GROWN_MAX (64 << 10) /* what mutations may grow a small one to */
#define FILES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
/* Present in sanitizer builds only. */
void __sanitizer_set_death_callback(void (*f)(void)) __attribute__((weak));

struct input {
	uint8_t *data;
	size_t n;
};

/* What runs now, for the signal handler. */
static struct {
	const uint8_t *data;
	size_t n;
	char path[300];
} current;

static struct {
	char *path[FILES_MAX];
	size_t n;
} files;

static void save_current(void)
{
	static const char say[] = "\ninput saved as ";
	int fd = open(current.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t at = 0;

	if (fd < 0)
		return;
	while (at < current.n) {
		ssize_t put = write(fd, current.data + at, current.n - at);

		if (put <= 0)
			break;
		at += (size_t)put;
	}
	close(fd);
	if (write(2, say, sizeof(say) - 1) > 0 && write(2, current.path, strlen(current.path)) > 0)
		(void)!write(2, "\n", 1);
}

static void on_death(int sig)
{
	save_current();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void catch_death(const char *program)
{
	static const int deaths[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM };
	const char *slash = strrchr(program, '/');

	snprintf(current.path, sizeof(current.path), "crash-%s", slash ? slash + 1 : program);
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(save_current);
		signal(SIGALRM, on_death);
		return;
	}
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
		signal(deaths[i], on_death);
}

/* A copy of exactly n bytes on the heap, so that a sanitizer sees the first byte behind it. */
static void run_one(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	if (n)
		memcpy(copy, data, n);
	current.data = copy;
	current.n = n;
	alarm(10); /* an input that takes longer is a failure, too */
	(void)LLVMFuzzerTestOneInput(copy, n);
	alarm(0);
	free(copy);
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t below(uint64_t *state, size_t n)
{
	return n ? (size_t)(next(state) % n) : 0;
}

/* Makes room for `add` bytes at `at`; false when it would get too long. */
static int open_gap(struct input *in, size_t at, size_t add)
{
	if (in->n + add > GROWN_MAX)
		return 0;
	memmove(in->data + at + add, in->data + at, in->n - at);
	in->n += add;
	return 1;
}

static void put_token(struct input *in, uint64_t *state)
{
	static const char *const tokens[] = {
		"0",
		"-1",
		"18446744073709551615",
		"18446744073709551616",
		"9223372036854775808",
		"\n",
		" ",
		"\t",
		")",
		"(",
		"max",
		"-",
		".",
		":",
		"/",
		"%",
		"\\",
		"\"",
		"\\012",
		"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"\xe2\x80\xae",
		"\x1b[2J",
		"kB",
		"inf",
	};
	const char *token = tokens[below(state, sizeof(tokens) / sizeof(tokens[0]))];
	size_t n = strlen(token), at = below(state, in->n + 1);

	if (open_gap(in, at, n))
		memcpy(in->data + at, token, n);
}

static void mutate(struct input *in, uint64_t *state)
{
	size_t at = below(state, in->n), n = 1 + below(state, 16), from;

	switch (next(state) % 7) {
	case 0: /* flip a bit */
		if (in->n)
			in->data[at] ^= (uint8_t)(1u << below(state, 8));
		break;
	case 1: /* any byte */
		if (in->n)
			in->data[at] = (uint8_t)next(state);
		break;
	case 2: /* cut the end */
		in->n = at;
		break;
	case 3: /* take some out */
		if (at + n <= in->n) {
			memmove(in->data + at, in->data + at + n, in->n - at - n);
			in->n -= n;
		}
		break;
	case 4: /* repeat a piece */
		from = below(state, in->n);
		if (from + n <= in->n && open_gap(in, in->n, n))
			memcpy(in->data + in->n - n, in->data + from, n);
		break;
	case 5: /* a byte more */
		if (open_gap(in, at, 1))
			in->data[at] = (uint8_t)next(state);
		break;
	default:
		put_token(in, state);
	}
}

static void mutations(const struct input *seed, unsigned long rounds, uint64_t state)
{
	uint8_t *work = malloc((seed->n > GROWN_MAX ? seed->n : GROWN_MAX) + 64);

	if (!work)
		abort();
	for (unsigned long i = 0; i < rounds; i++) {
		struct input in = { .data = work, .n = seed->n };
		size_t changes = 1 + below(&state, 6);

		if (seed->n)
			memcpy(work, seed->data, seed->n);
		while (changes--)
			mutate(&in, &state);
		run_one(in.data, in.n);
	}
	free(work);
}

static int load(const char *path, struct input *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t got = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > INPUT_MAX) {
		fprintf(stderr, "cannot load '%s'\n", path);
		return -1;
	}
	ret->n = 0;
	ret->data = malloc((size_t)st.st_size + 1);
	while (ret->data && ret->n < (size_t)st.st_size) {
		got = read(fd, ret->data + ret->n, (size_t)st.st_size - ret->n);
		if (got <= 0)
			break;
		ret->n += (size_t)got;
	}
	close(fd);
	return ret->data && got >= 0 ? 0 : -1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_file(const char *dir, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", name);
	if (files.n == FILES_MAX || !(files.path[files.n] = strdup(path)))
		return -1;
	files.n++;
	return 0;
}

static int add_path(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!d)
		return errno == ENOTDIR ? add_file("", path) : -1;
	while (!r && (e = readdir(d)))
		if (e->d_name[0] != '.')
			r = add_file(path, e->d_name);
	closedir(d);
	return r;
}

int main(int argc, char **argv)
{
	unsigned long rounds = MUTATIONS;
	int first = 1;

	if (argc > 2 && strcmp(argv[1], "-n") == 0) {
		rounds = strtoul(argv[2], NULL, 10);
		first = 3;
	}
	for (int i = first; i < argc; i++) {
		if (add_path(argv[i]) < 0) {
			fprintf(stderr, "cannot read '%s'\n", argv[i]);
			return 2;
		}
	}
	if (!files.n) {
		fprintf(stderr, "no corpus: %s DIR-or-FILE...\n", argv[0]);
		return 2;
	}
	qsort(files.path, files.n, sizeof(files.path[0]), by_name);
	catch_death(argv[0]);
	for (size_t i = 0; i < files.n; i++) {
		struct input seed;

		if (load(files.path[i], &seed) < 0)
			return 2;
		run_one(seed.data, seed.n);
		mutations(&seed, rounds / files.n, 0x9e3779b97f4a7c15ull + i);
		free(seed.data);
		free(files.path[i]);
	}
	printf("%zu inputs, %lu mutations\n", files.n, rounds / files.n * files.n);
	return 0;
}

/* SPDX-License-Identifier: MIT
 *
 * What processes that map the same file have in common is read once, and what only looks the same is not
 * taken for it.
 */
#include "../unit.h"
#include "base/clock.h"
#include "base/io.h"
#include "stack/native/process.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A process that has a library. */
struct child {
	pid_t pid;
	uint64_t at; /* address of a function of it */
	struct native_process *native;
};

static uint64_t *told; /* by the child */

static void run_child(const char *library, const char *function, unsigned holes)
{
	void *handle, *at;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The holes it would fit in are filled: it is elsewhere than in others. */
	for (unsigned i = 0; i < holes; i++)
		(void)mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	at = handle ? dlsym(handle, function) : NULL;
	if (at && strstr(function, "_hidden_at")) /* tells where another one is */
		at = ((void *(*)(void))at)();
	__atomic_store_n(told, at ? (uint64_t)(uintptr_t)at : 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static struct child start(struct native_shared *s, const char *library, const char *function,
			  unsigned holes)
{
	struct child c = { 0 };
	int64_t until = clock_mono_ns() + 10 * NS_PER_S;

	*told = 0;
	c.pid = fork();
	if (c.pid == 0)
		run_child(library, function, holes);
	assert_true(c.pid > 0);
	while (!c.at && clock_mono_ns() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		c.at = __atomic_load_n(told, __ATOMIC_SEQ_CST);
	}
	assert_true(c.at > 1);
	assert_int_equal(native_open(&c.native, s, c.pid), 0);
	return c;
}

static void kill_child(struct child *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	c->pid = 0;
}

static void end(struct child *c)
{
	kill_child(c);
	native_close(c->native);
}

static const char *symbol_of(struct child *c)
{
	struct native_place place = { 0 };

	assert_true(native_place(c->native, c->at, clock_mono_ns(), &place));
	return place.symbol;
}

static size_t frames_of(struct child *c)
{
	char path[64], text[256], *pc, *sp;
	uint64_t found[NATIVE_FRAMES_MAX];
	int64_t until = clock_mono_ns() + 10 * NS_PER_S;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)c->pid);
	while (clock_mono_ns() < until) {
		if (io_read(AT_FDCWD, path, text, sizeof(text)) > 0 && text[0] >= '0' &&
		    text[0] <= '9')
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	pc = strrchr(text, ' ');
	assert_non_null(pc);
	*pc = '\0';
	sp = strrchr(text, ' ');
	assert_non_null(sp);
	return native_unwind(c->native, strtoull(pc + 1, NULL, 16), strtoull(sp + 1, NULL, 16),
			     clock_mono_ns(), found, NATIVE_FRAMES_MAX);
}

static void test_read_once(void **state)
{
	struct native_shared *s;
	struct child a, b;
	size_t frames;

	(void)state;
	assert_int_equal(native_shared_open(&s), 0);
	a = start(s, LATE_LIBRARY, "late_burn_much", 0);
	b = start(s, LATE_LIBRARY, "late_burn_much", 64);
	assert_true(a.at != b.at);
	assert_string_equal(symbol_of(&a), "late_burn_much");
	frames = frames_of(&a);
	assert_true(frames >= 1);
	assert_int_equal(native_shared_counts(s).built, 1);
	assert_string_equal(symbol_of(&b), "late_burn_much");
	/* The name, too, is one. */
	assert_ptr_equal(symbol_of(&b), symbol_of(&a));
	assert_int_equal(frames_of(&b), frames);
	assert_int_equal(native_shared_counts(s).built, 1);
	/* A worker of the next epoch finds it still. */
	end(&a);
	end(&b);
	a = start(s, LATE_LIBRARY, "late_burn_little", 8);
	assert_string_equal(symbol_of(&a), "late_burn_little");
	assert_int_equal(native_shared_counts(s).built, 1);
	end(&a);
	native_shared_close(s);
}

/* One process ends before its symbols were read: no others are left without. */
static void test_gone(void **state)
{
	struct native_shared *s;
	struct native_place place;
	struct child a, b;

	(void)state;
	assert_int_equal(native_shared_open(&s), 0);
	a = start(s, LATE_LIBRARY, "late_burn_much", 0);
	b = start(s, LATE_LIBRARY, "late_burn_much", 0);
	/* The image is known, and its symbols are not asked for yet. */
	assert_non_null(native_image(a.native, native_mapping(a.native, a.at, 0), a.at));
	kill_child(&a);
	assert_string_equal(symbol_of(&a), "");
	assert_int_equal(native_shared_counts(s).built, 0);
	assert_string_equal(symbol_of(&b), "late_burn_much");
	kill_child(&b);
	/* What is known stays known. */
	assert_string_equal(symbol_of(&b), "late_burn_much");
	native_close(b.native);
	assert_int_equal(native_open(&b.native, s, INT32_MAX), 0);
	assert_false(native_place(b.native, b.at, 0, &place));
	end(&a);
	native_close(b.native);
	native_shared_close(s);
}

static uint8_t *load(const char *path, size_t *ret)
{
	int r;
	uint8_t *data = (uint8_t *)io_slurp(AT_FDCWD, path, 16 << 20, ret, &r);

	assert_non_null(data);
	return data;
}

/* The same file, of this content from now on. */
static void overwrite(const char *path, const uint8_t *data, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), (ssize_t)n);
	close(fd);
}

/* Two functions change names: nothing else is different, not even the build-id. */
static void swap_names(uint8_t *data, size_t n, const char *one, const char *other)
{
	Elf64_Ehdr *head = (Elf64_Ehdr *)data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(data + head->e_shoff);
	Elf64_Sym *found[2] = { 0 };

	assert_true(head->e_shoff + head->e_shnum * sizeof(*sections) <= n);
	for (unsigned i = 0; i < head->e_shnum; i++) {
		Elf64_Sym *symbols = (Elf64_Sym *)(data + sections[i].sh_offset);
		const char *strings;

		if (sections[i].sh_type != SHT_DYNSYM)
			continue;
		strings = (const char *)data + sections[sections[i].sh_link].sh_offset;
		for (size_t k = 0; k < sections[i].sh_size / sizeof(*symbols); k++) {
			if (strcmp(strings + symbols[k].st_name, one) == 0)
				found[0] = &symbols[k];
			else if (strcmp(strings + symbols[k].st_name, other) == 0)
				found[1] = &symbols[k];
		}
	}
	assert_true(found[0] && found[1]);
	Elf64_Sym was = *found[0];
	found[0]->st_value = found[1]->st_value;
	found[0]->st_size = found[1]->st_size;
	found[1]->st_value = was.st_value;
	found[1]->st_size = was.st_size;
}

static void test_same_path(void **state)
{
	char folder[] = "/tmp/spotter-shared-XXXXXX", path[64], fresh[64];
	struct native_shared *s;
	struct child a, b;
	size_t late_n, framed_n;
	uint8_t *late = load(LATE_LIBRARY, &late_n), *framed = load(FRAMED_LIBRARY, &framed_n);

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/lib.so", folder);
	snprintf(fresh, sizeof(fresh), "%s/new.so", folder);
	assert_int_equal(native_shared_open(&s), 0);
	/* Another file takes the path, while a process has the deleted one. */
	overwrite(path, late, late_n);
	a = start(s, path, "late_burn_much", 0);
	assert_string_equal(symbol_of(&a), "late_burn_much");
	overwrite(fresh, framed, framed_n);
	assert_int_equal(rename(fresh, path), 0);
	b = start(s, path, "framed_burn_much", 0);
	assert_string_equal(symbol_of(&b), "framed_burn_much");
	assert_string_equal(symbol_of(&a), "late_burn_much");
	end(&a);
	end(&b);
	/* The same file, overwritten: what is known of it is kept, and is another's. */
	overwrite(path, late, late_n);
	a = start(s, path, "late_burn_much", 0);
	assert_string_equal(symbol_of(&a), "late_burn_much");
	end(&a);
	swap_names(late, late_n, "late_burn_much", "late_burn_little");
	overwrite(path, late, late_n);
	a = start(s, path, "late_burn_much", 0);
	assert_string_equal(symbol_of(&a), "late_burn_much");
	end(&a);
	assert_int_equal(native_shared_counts(s).built, 4);
	native_shared_close(s);
	unlink(path);
	rmdir(folder);
	free(late);
	free(framed);
}

/* An image in memory, at 0x10000: header, one segment of notes, and symbols. */
struct small {
	Elf64_Ehdr head;
	Elf64_Phdr headers[2];
	Elf64_Nhdr note;
	char name[4];
	uint8_t id[20];
	Elf64_Sym symbols[4];
};

#define SMALL_AT 0x10000

static int read_small(void *arg, struct mem_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t at = pieces[i].at - SMALL_AT;

		pieces[i].failed = pieces[i].at < SMALL_AT || at > sizeof(struct small) ||
				   pieces[i].n > sizeof(struct small) - at;
		if (!pieces[i].failed)
			memcpy(pieces[i].to, (uint8_t *)arg + at, pieces[i].n);
	}
	return 0;
}

static struct native_key identity(struct small *small, uint64_t inode, bool writable)
{
	struct elf_mapping first = { .device = 7, .inode = inode, .writable = writable };
	struct elf_image elf = { .start = SMALL_AT,
				 .end = SMALL_AT + sizeof(*small),
				 .bias = SMALL_AT,
				 .symbols = SMALL_AT + offsetof(struct small, symbols) };
	struct native_headers headers;
	struct native_key key;
	struct mem m;

	mem_open_source(&m, read_small, small);
	(void)native_headers_read(&m, elf.start, &elf.bias, &headers);
	native_identity(&m, &first, &elf, &headers, &key);
	return key;
}

static void test_identity(void **state)
{
	const struct small good = {
		.head = { .e_phnum = 2, .e_phoff = offsetof(struct small, headers) },
		.headers = { { .p_type = PT_LOAD },
			     { .p_type = PT_NOTE,
			       .p_vaddr = offsetof(struct small, note),
			       .p_memsz = sizeof(Elf64_Nhdr) + 4 + 20 } },
		.note = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
		.id = { 1, 2, 3 },
	};
	static const uint32_t wrong[] = { 0, 7, 21, NATIVE_ID_MAX + 1, 1 << 20, UINT32_MAX };
	struct small x = good;
	struct native_key key = identity(&x, 5, false);

	(void)state;
	assert_int_equal(key.inode, 5);
	assert_int_equal(key.device, 7);
	assert_int_equal(key.id_n, 20);
	assert_int_equal(key.id[2], 3);
	assert_int_equal(identity(&x, 0, false).inode, 0);
	assert_int_equal(identity(&x, 5, true).inode, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		x.note.n_descsz = wrong[i];
		assert_int_equal(identity(&x, 5, false).inode, 0);
	}
	x = good;
	x.note.n_namesz = UINT32_MAX;
	assert_int_equal(identity(&x, 5, false).inode, 0);
	x = good;
	x.headers[1].p_vaddr = UINT64_MAX;
	assert_int_equal(identity(&x, 5, false).inode, 0);
	x = good;
	x.headers[1].p_type = PT_NULL;
	assert_int_equal(identity(&x, 5, false).inode, 0);
	x = good;
	x.symbols[3].st_value++;
	assert_int_equal(identity(&x, 5, false).inode, 5);
	assert_true(identity(&x, 5, false).fingerprint != key.fingerprint);
}

/* Its name as soon as the file has been asked. */
static const char *named(struct child *c)
{
	int64_t until = clock_mono_ns() + 20 * NS_PER_S;
	struct native_place place = { .pending = true };

	while (place.pending && clock_mono_ns() < until) {
		assert_true(native_place(c->native, c->at, clock_mono_ns(), &place));
		if (place.pending)
			assert_string_equal(place.symbol, "");
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	assert_false(place.pending);
	return place.symbol;
}

/* Functions that a library does not export have the names that its file has, if it is the file. */
static void test_not_exported(void **state)
{
	char folder[] = "/tmp/spotter-shared-XXXXXX", path[64], fresh[64];
	struct native_place place;
	struct native_shared *s;
	struct child a, b;
	size_t late_n, framed_n;
	uint8_t *late = load(LATE_LIBRARY, &late_n), *framed = load(FRAMED_LIBRARY, &framed_n);

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/lib.so", folder);
	snprintf(fresh, sizeof(fresh), "%s/new.so", folder);
	assert_int_equal(native_shared_open(&s), 0);
	overwrite(path, late, late_n);
	a = start(s, path, "late_hidden_at", 0);
	b = start(s, path, "late_hidden_at", 64);
	assert_string_equal(named(&a), "late_hidden");
	/* Of another process, and in the middle of it: known. */
	assert_true(native_place(b.native, b.at + 1, clock_mono_ns(), &place));
	assert_false(place.pending);
	assert_string_equal(place.symbol, "late_hidden");
	end(&a);
	end(&b);
	native_shared_close(s);
	/* Another file has taken its path; a FIFO; nothing. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(native_shared_open(&s), 0);
		unlink(path); /* a process may still be on its way out of the old one */
		overwrite(path, late, late_n);
		a = start(s, path, "late_hidden_at", 0);
		overwrite(fresh, framed, framed_n);
		if (i == 1) {
			unlink(fresh);
			assert_int_equal(mkfifo(fresh, 0600), 0);
		}
		assert_int_equal(i < 2 ? rename(fresh, path) : unlink(path), 0);
		assert_string_equal(named(&a), "");
		end(&a);
		native_shared_close(s);
	}
	unlink(fresh);
	unlink(path);
	rmdir(folder);
	free(late);
	free(framed);
}

static struct native_table *filled(struct native_shared *s, uint64_t inode, size_t n)
{
	struct native_table *t = native_table_get(s, &(struct native_key){ .inode = inode });

	assert_non_null(t);
	if (!t->symbols_read) {
		assert_true(vec_reserve(&t->symbols, n));
		memset(t->symbols.v, 0, n * sizeof(t->symbols.v[0]));
		t->symbols.n = n;
		native_table_filled(s, t);
	}
	return t;
}

static void test_room(void **state)
{
	struct native_shared *s;
	struct native_table *t[8];
	const size_t third = NATIVE_BYTES_MAX / 3 / sizeof(struct native_symbol);

	(void)state;
	assert_int_equal(native_shared_open(&s), 0);
	for (uint64_t i = 0; i < 3; i++)
		t[i] = filled(s, i + 1, third);
	assert_int_equal(native_shared_counts(s).dropped, 0);
	/* The first is used again: the second is the one to go, and comes again when it is asked for. */
	native_table_put(s, filled(s, 1, third));
	t[3] = filled(s, 4, third);
	assert_int_equal(native_shared_counts(s).dropped, 1);
	assert_true(t[0]->symbols_read && t[2]->symbols_read && t[3]->symbols_read);
	assert_false(t[1]->symbols_read);
	assert_true(native_shared_counts(s).bytes <= NATIVE_BYTES_MAX);
	native_table_put(s, filled(s, 2, third));
	assert_true(t[1]->symbols_read);
	assert_int_equal(native_shared_counts(s).dropped, 2);
	assert_int_equal(native_shared_counts(s).tables, 4);
	/* Those without an identity are nobody else's, and go with their process. */
	t[4] = filled(s, 0, 10);
	t[5] = filled(s, 0, 10);
	assert_ptr_not_equal(t[4], t[5]);
	native_table_put(s, t[4]);
	native_table_put(s, t[5]);
	assert_int_equal(native_shared_counts(s).tables, 4);
	for (uint64_t i = 0; i < 2 * NATIVE_IDLE_MAX; i++)
		native_table_put(s, filled(s, 100 + i, 1));
	assert_int_equal(native_shared_counts(s).tables, 4 + NATIVE_IDLE_MAX);
	native_shared_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_once), cmocka_unit_test(test_gone),
		cmocka_unit_test(test_same_path), cmocka_unit_test(test_identity),
		cmocka_unit_test(test_room),      cmocka_unit_test(test_not_exported),
	};

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

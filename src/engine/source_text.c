/* SPDX-License-Identifier: MIT */
#include "engine/source_text.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/vec.h"
#include "engine/source_open.h"
#include "explain/activity.h"
#include "explain/does/does.h"
#include "explain/keeps/keeps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WAITING_MAX = 4096,
	FILES_MAX = 8, /* kept in memory: a stack visits few files at a time */
	FILE_BYTES_MAX = 2 << 20,
	STACK_BYTES = 64 << 10,
	STOP_MS = 50,
	SCANNED_MAX = 32, /* files that are looked through */
};

struct question {
	uint32_t place;
	pid_t pid;
	int32_t line;
	int64_t started_ns;
	char *file;
};

struct answer {
	uint32_t place;
	char text[SOURCE_LINE_MAX];
};

struct noted {
	char *file;
	struct source_note note;
};

struct source_file {
	char *path;
	pid_t pid;
	int64_t started_ns; /* another process may have the same id later, and other rights */
	char *text;
	size_t n;
	dev_t device;
	ino_t inode;
	unsigned used;
};

/* Two containers may each have a "/app/train.py" of their own. */
struct scanned {
	char *path;
	dev_t device;
	ino_t inode;
};

struct source_text {
	pthread_mutex_t lock;
	pthread_cond_t wake, ended;
	bool stop, over;
	bool abandoned; /* nobody is left: the thread frees this */
	VEC(struct question) questions;
	size_t first; /* of those that wait */
	VEC(struct answer) answers;
	size_t first_answer;
	VEC(struct noted) notes;
	size_t first_note;
	/* The thread's own. */
	VEC(struct scanned) scanned;
	struct source_file files[FILES_MAX];
	unsigned clock;
};

static void source_free(struct source_text *s)
{
	for (size_t i = s->first; i < s->questions.n; i++)
		free(s->questions.v[i].file);
	vec_done(&s->questions);
	vec_done(&s->answers);
	for (size_t i = s->first_note; i < s->notes.n; i++)
		free(s->notes.v[i].file);
	vec_done(&s->notes);
	for (size_t i = 0; i < s->scanned.n; i++)
		free(s->scanned.v[i].path);
	vec_done(&s->scanned);
	for (size_t i = 0; i < FILES_MAX; i++) {
		free(s->files[i].path);
		free(s->files[i].text);
	}
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->wake);
	pthread_cond_destroy(&s->ended);
	free(s);
}

static char *read_source(const struct question *q, struct source_file *f)
{
	struct stat st;
	auto_close int fd = source_open_as(q->pid, q->file, q->started_ns, FILE_BYTES_MAX, &st);
	auto_free char *text = fd >= 0 ? malloc((size_t)st.st_size + 1) : NULL;
	ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;

	if (n < 0)
		return NULL;
	f->n = (size_t)n;
	f->device = st.st_dev;
	f->inode = st.st_ino;
	return steal_ptr(&text);
}

/* Is it a file of the program's own that was not looked through yet? Notes that it was. */
static bool is_to_scan(struct source_text *s, const struct source_file *f)
{
	struct scanned *slot;

	if (!f->text || s->scanned.n >= SCANNED_MAX ||
	    place_is_library(&(struct place){ .kind = PLACE_PYTHON, .file = f->path }))
		return false;
	for (size_t i = 0; i < s->scanned.n; i++)
		if (s->scanned.v[i].device == f->device && s->scanned.v[i].inode == f->inode &&
		    strcmp(s->scanned.v[i].path, f->path) == 0)
			return false;
	slot = vec_push(&s->scanned);
	if (!slot)
		return false;
	*slot = (struct scanned){ strdup(f->path), f->device, f->inode };
	if (!slot->path)
		s->scanned.n--;
	return slot->path != NULL;
}

static void tell(struct source_text *s, const char *path, const struct source_note *note)
{
	struct noted *slot;

	pthread_mutex_lock(&s->lock);
	slot = vec_push(&s->notes);
	if (slot)
		*slot = (struct noted){ strdup(path), *note };
	if (slot && !slot->file)
		s->notes.n--;
	pthread_mutex_unlock(&s->lock);
}

static void look_through(struct source_text *s, const struct source_file *f)
{
	struct source_note note;
	struct keep kept[KEEPS_OF_FILE];
	struct does done[DOES_OF_FILE];
	size_t n;

	if (!is_to_scan(s, f))
		return;
	n = keeps_scan(f->text, f->n, kept);
	for (size_t i = 0; i < n; i++) {
		note = (struct source_note){ .kind = PLACE_KEEPS, .line = kept[i].line };
		snprintf(note.function, sizeof(note.function), "%s", kept[i].function);
		keep_write(&kept[i], note.text, sizeof(note.text));
		tell(s, f->path, &note);
	}
	n = does_scan(f->text, f->n, done);
	for (size_t i = 0; i < n; i++) {
		note = (struct source_note){ .kind = PLACE_DOES, .line = done[i].from };
		/* a book keeps one place for a line of a function: two that begin in one line are two */
		snprintf(note.function, sizeof(note.function), "%s", does_name(done[i].what));
		does_write(&done[i], note.text, sizeof(note.text));
		tell(s, f->path, &note);
	}
}

/* The file, read or kept; also a failure is kept, as one that has no text. */
static const struct source_file *file_of(struct source_text *s, const struct question *q)
{
	struct source_file *oldest = &s->files[0];

	s->clock++;
	for (size_t i = 0; i < FILES_MAX; i++) {
		struct source_file *f = &s->files[i];

		if (f->path && f->pid == q->pid && f->started_ns == q->started_ns &&
		    strcmp(f->path, q->file) == 0) {
			f->used = s->clock;
			return f;
		}
		if (f->used < oldest->used)
			oldest = f;
	}
	free(oldest->path);
	free(oldest->text);
	*oldest = (struct source_file){ .path = strdup(q->file),
					.pid = q->pid,
					.started_ns = q->started_ns,
					.used = s->clock };
	if (oldest->path)
		oldest->text = read_source(q, oldest);
	if (oldest->text)
		look_through(s, oldest);
	return oldest;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

/* Line number `line` (from 1), without blanks around it: its length. */
static size_t find_line(const struct source_file *f, int32_t line, const char **ret)
{
	const char *at = f->text, *end = f->text + f->n, *stop;

	for (int32_t i = 1; i < line && at; i++) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return 0;
	stop = memchr(at, '\n', (size_t)(end - at));
	stop = stop ? stop : end;
	while (at < stop && is_blank(*at))
		at++;
	while (stop > at && is_blank(stop[-1]))
		stop--;
	*ret = at;
	return (size_t)(stop - at);
}

static void answer(struct source_text *s, const struct question *q)
{
	const struct source_file *f = file_of(s, q);
	const char *text = NULL;
	size_t n = f->text ? find_line(f, q->line, &text) : 0;
	struct answer *a;

	if (!n || memchr(text, 0, n))
		return;
	pthread_mutex_lock(&s->lock);
	a = vec_push(&s->answers);
	if (a) {
		a->place = q->place;
		n = n < SOURCE_LINE_MAX ? n : SOURCE_LINE_MAX - 1;
		memcpy(a->text, text, n);
		a->text[n] = '\0';
	}
	pthread_mutex_unlock(&s->lock);
}

static void *source_main(void *arg)
{
	struct source_text *s = arg;
	bool abandoned;

	pthread_setname_np(pthread_self(), "spotter-source");
	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		struct question q;

		if (s->first == s->questions.n) {
			s->questions.n = s->first = 0;
			pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		q = s->questions.v[s->first++];
		pthread_mutex_unlock(&s->lock);
		answer(s, &q);
		free(q.file);
		pthread_mutex_lock(&s->lock);
	}
	s->over = true;
	abandoned = s->abandoned;
	pthread_cond_signal(&s->ended);
	pthread_mutex_unlock(&s->lock);
	if (abandoned)
		source_free(s);
	return NULL;
}

struct source_text *source_text_start(void)
{
	struct source_text *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	pthread_cond_init(&s->ended, &attr);
	pthread_condattr_destroy(&attr);
	if (thread_start(NULL, STACK_BYTES, source_main, s) < 0) {
		source_free(s);
		return NULL;
	}
	return s;
}

void source_text_stop(struct source_text *s)
{
	int64_t until = clock_mono_ns() + STOP_MS * NS_PER_MS;
	struct timespec ts = { .tv_sec = until / NS_PER_S, .tv_nsec = until % NS_PER_S };
	bool over;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	while (!s->over && pthread_cond_timedwait(&s->ended, &s->lock, &ts) == 0)
		;
	over = s->over;
	s->abandoned = !over;
	pthread_mutex_unlock(&s->lock);
	if (over)
		source_free(s);
}

void source_text_ask(struct source_text *s, uint32_t place, pid_t pid, int64_t started_ns,
		     const char *file, int32_t line)
{
	struct question *q = NULL;

	size_t n = strnlen(file, SOURCE_PATH_BYTES);

	/* "<string>", "<frozen importlib._bootstrap>" are no files; and what a program calls its code is
	 * its own affair: only what is named as Python source is looked at, not "/etc/shadow". */
	if (!s || line <= 0 || n >= SOURCE_PATH_BYTES || !source_is_named(file))
		return;
	pthread_mutex_lock(&s->lock);
	if (s->questions.n - s->first < WAITING_MAX)
		q = vec_push(&s->questions);
	if (q) {
		*q = (struct question){ place, pid, line, started_ns, strdup(file) };
		if (!q->file)
			s->questions.n--;
		pthread_cond_signal(&s->wake);
	}
	pthread_mutex_unlock(&s->lock);
}

bool source_text_next(struct source_text *s, uint32_t *ret_place, char text[SOURCE_LINE_MAX])
{
	bool any;

	if (!s)
		return false;
	pthread_mutex_lock(&s->lock);
	any = s->first_answer < s->answers.n;
	if (any) {
		*ret_place = s->answers.v[s->first_answer].place;
		memcpy(text, s->answers.v[s->first_answer].text, SOURCE_LINE_MAX);
		s->first_answer++;
	} else {
		s->answers.n = s->first_answer = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return any;
}

bool source_text_note(struct source_text *s, char **ret_file, struct source_note *ret)
{
	bool any;

	if (!s)
		return false;
	pthread_mutex_lock(&s->lock);
	any = s->first_note < s->notes.n;
	if (any) {
		*ret_file = s->notes.v[s->first_note].file;
		*ret = s->notes.v[s->first_note].note;
		s->first_note++;
	} else {
		s->notes.n = s->first_note = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return any;
}

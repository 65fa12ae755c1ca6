/* SPDX-License-Identifier: MIT
 *
 * A file of the queue from anywhere, in a folder as after a crash: what can be read of it is what a plain walk over the
 * bytes finds, the rest is cut off, and the queue works. The first byte says how much there is of the note of what was
 * sent: never all of it, as one that holds is believed.
 */
#include "base/buf.h"
#include "fuzz.h"
#include "push/spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTE_BYTES = 24 };

static char root[512], file[600], note[600];

static void make_folder(void)
{
	const char *tmp = getenv("TMPDIR");

	if (root[0])
		return;
	/* Memory where there is some: files of a disk are slow to make. */
	snprintf(root, sizeof(root), "%.480s/fuzz-push-XXXXXX",
		 tmp                             ? tmp
		 : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
						 : "/tmp");
	must(mkdtemp(root) != NULL, "there is a folder");
	snprintf(file, sizeof(file), "%s/0000000000000001.queue", root);
	snprintf(note, sizeof(note), "%s/position", root);
}

static void remove_folder(void)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/lock", root);
	unlink(path);
	unlink(file);
	unlink(note);
	rmdir(root);
	root[0] = 0;
}

static void write_file(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd >= 0 && write(fd, p, n) == (ssize_t)n, "the file is written");
	close(fd);
}

/* Takes everything out again: so many samples, as the walk said. */
static void empty(struct spool *q, uint32_t records, uint64_t samples)
{
	struct buf out = { 0 };
	uint32_t got, n = 0;
	uint64_t sum = 0;

	while (spool_head(q, &out, &got) == 0) {
		must(out.len > 0, "a record has something in it");
		sum += got;
		n++;
		spool_pop(q);
	}
	must(n == records && sum == samples, "all of it, once");
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct spool *q = NULL;
	struct spool_stats s;
	uint64_t samples;
	uint32_t records;
	size_t whole;

	if (n < 1 || n > 1 << 16)
		return 0;
	make_folder();
	whole = spool_scan(data + 1, n - 1, &records, &samples);
	must(whole <= n - 1, "a walk stays within");
	write_file(file, data + 1, n - 1);
	write_file(note, data, data[0] % NOTE_BYTES < n ? data[0] % NOTE_BYTES : n);
	must(spool_open(root, SPOOL_BYTES_MIN, &q, NULL) == 0, "it opens");
	spool_stats(q, &s);
	must(s.records == records && s.samples == samples, "what is whole is there");
	must(s.damaged == (whole < n - 1), "what is not is cut, and counted");
	must(spool_put(q, "x", 1, 1) == 0, "more can be put");
	empty(q, records + 1, samples + 1);
	spool_close(q);
	remove_folder();
	return 0;
}

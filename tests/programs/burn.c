/* SPDX-License-Identifier: MIT
 *
 * A program that uses known amounts of known things and says what it used, for the truth test.
 *
 *	burn [STEP...]      steps run one after another
 *	cpu=S               S seconds of CPU in the first thread
 *	threads=NxS         N threads, each S seconds of CPU, at the same time
 *	children=NxS        N children, each S seconds of CPU, at the same time, waited for
 *	short=NxMS          N children one after another, each MS milliseconds of CPU, waited for
 *	ignored=NxMS        the same with SIGCHLD ignored: nobody waits for them
 *	daemon=S            a daemonised grandchild that burns S seconds; not waited for
 *	sleep=S             nothing
 *	touch=MB            allocates and touches MB megabytes and keeps them
 *	grow=MBxMS          allocates MB megabytes a step of MS milliseconds, until it is stopped
 *	write=FILE:MB       writes MB megabytes and fsyncs
 *	read=FILE           reads it through, from the disk (its cached pages are dropped first)
 *	exec=NAME           becomes another program (argv[0] NAME) that burns 0.3 s
 *	spin=NxS            N threads that compute for S seconds of wall time
 *
 * Prints JSON: CPU of itself and of waited-for children as getrusage knows them, CPU of each named
 * thread by its own clock, bytes read and written.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double clock_s(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void compute(void)
{
	static volatile uint64_t sink;
	uint64_t x = sink;

	for (int i = 0; i < 20000; i++)
		x = x * 6364136223846793005ull + 1;
	sink = x;
}

static void burn_cpu(double seconds, clockid_t id)
{
	double end = clock_s(id) + seconds;

	while (clock_s(id) < end)
		compute();
}

static void pair(const char *text, double *a, double *b)
{
	char *end;

	*a = strtod(text, &end);
	*b = *end ? strtod(end + 1, NULL) : 0;
}

struct thread_job {
	double seconds;
	clockid_t clock;
	double used;
	int number;
};

static void *thread_main(void *arg)
{
	struct thread_job *job = arg;
	char name[16];

	snprintf(name, sizeof(name), "burn-%d", job->number);
	pthread_setname_np(pthread_self(), name);
	burn_cpu(job->seconds, job->clock);
	job->used = clock_s(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void threads(const char *value, clockid_t id)
{
	struct thread_job jobs[64];
	pthread_t ids[64];
	double n, seconds;

	pair(value, &n, &seconds);
	for (int i = 0; i < (int)n && i < 64; i++) {
		jobs[i] = (struct thread_job){ .seconds = seconds, .clock = id, .number = i };
		pthread_create(&ids[i], NULL, thread_main, &jobs[i]);
	}
	for (int i = 0; i < (int)n && i < 64; i++) {
		pthread_join(ids[i], NULL);
		printf("\"burn-%d\": %.6f, ", i, jobs[i].used);
	}
}

static void child(double seconds)
{
	burn_cpu(seconds, CLOCK_PROCESS_CPUTIME_ID);
	_exit(0);
}

static void children(const char *value)
{
	double n, seconds;

	pair(value, &n, &seconds);
	for (int i = 0; i < (int)n; i++)
		if (!fork())
			child(seconds);
	for (int i = 0; i < (int)n; i++)
		wait(NULL);
}

static void short_lived(const char *value, int ignore)
{
	double n, ms;

	pair(value, &n, &ms);
	if (ignore)
		signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < (int)n; i++) {
		pid_t pid = fork();

		if (!pid)
			child(ms * 1e-3);
		waitpid(pid, NULL, 0); /* with SIGCHLD ignored: waits, then ECHILD */
	}
	signal(SIGCHLD, SIG_DFL);
}

static void daemon_child(double seconds)
{
	pid_t pid = fork();

	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	setsid();
	if (fork())
		_exit(0);
	prctl(PR_SET_NAME, "burn-daemon");
	child(seconds);
}

static void touch(double mb)
{
	size_t n = (size_t)(mb * 1e6);
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(3);
	memset(p, 1, n);
}

static void grow(const char *value)
{
	double mb, ms;

	pair(value, &mb, &ms);
	for (;;) {
		touch(mb);
		usleep((useconds_t)(ms * 1000));
	}
}

static void write_file(const char *value)
{
	static char block[1 << 20];
	char path[512];
	const char *colon = strrchr(value, ':');
	int mb = (int)strtol(colon + 1, NULL, 10);
	int fd;

	snprintf(path, sizeof(path), "%.*s", (int)(colon - value), value);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	memset(block, 7, sizeof(block));
	for (int i = 0; i < mb; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			exit(4);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	printf("\"written\": %d, ", mb << 20);
}

static void read_file(const char *path)
{
	static char block[1 << 20];
	int fd = open(path, O_RDONLY);
	long total = 0;
	ssize_t n;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while ((n = read(fd, block, sizeof(block))) > 0)
		total += n;
	close(fd);
	printf("\"read\": %ld, ", total);
}

static double usage_s(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void step(const char *name, const char *value, char **argv)
{
	if (strcmp(name, "cpu") == 0)
		burn_cpu(strtod(value, NULL), CLOCK_THREAD_CPUTIME_ID);
	else if (strcmp(name, "threads") == 0)
		threads(value, CLOCK_THREAD_CPUTIME_ID);
	else if (strcmp(name, "spin") == 0)
		threads(value, CLOCK_MONOTONIC);
	else if (strcmp(name, "children") == 0)
		children(value);
	else if (strcmp(name, "short") == 0)
		short_lived(value, 0);
	else if (strcmp(name, "ignored") == 0)
		short_lived(value, 1);
	else if (strcmp(name, "daemon") == 0)
		daemon_child(strtod(value, NULL));
	else if (strcmp(name, "sleep") == 0)
		usleep((useconds_t)(strtod(value, NULL) * 1e6));
	else if (strcmp(name, "touch") == 0)
		touch(strtod(value, NULL));
	else if (strcmp(name, "grow") == 0)
		grow(value);
	else if (strcmp(name, "write") == 0)
		write_file(value);
	else if (strcmp(name, "read") == 0)
		read_file(value);
	else if (strcmp(name, "exec") == 0)
		execl("/proc/self/exe", value, "cpu=0.3", (char *)NULL);
	else
		fprintf(stderr, "%s: unknown step %s\n", argv[0], name), exit(2);
}

int main(int argc, char **argv)
{
	struct rusage u;

	printf("{");
	for (int i = 1; i < argc; i++) {
		char name[32] = "";
		const char *equals = strchr(argv[i], '=');

		if (!equals || equals - argv[i] >= (long)sizeof(name))
			return 2;
		memcpy(name, argv[i], (size_t)(equals - argv[i]));
		fflush(stdout);
		step(name, equals + 1, argv);
	}
	getrusage(RUSAGE_SELF, &u);
	printf("\"self\": %.6f, \"children\": %.6f, \"maxrss\": %ld, \"pid\": %d}\n",
	       usage_s(RUSAGE_SELF), usage_s(RUSAGE_CHILDREN), u.ru_maxrss * 1024, getpid());
	return 0;
}

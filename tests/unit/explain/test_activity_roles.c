/* SPDX-License-Identifier: MIT
 *
 * What threads are for, from stacks, and which one the training waits for.
 */
#include "../unit.h"

#include "activity_world.h"

static void roles(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "thread 32 20 102 python3\nthread 33 20 103 pt_autograd_0\n"
		       "thread 34 20 104 python3\nthread 35 21 105 python3\n"
		       "process 22 106 ptxas\nthread 36 22 106 ptxas\n"
		       "does 30 2 poll 1 on pipe peer 21\ndoes 31 8 running 0.6\n"
		       "does 31 9 pipe 0.4\ndoes 32 12 lock 1\ndoes 33 0 lock 1\n"
		       "does 34 15 lock 1\ndoes 35 11 lock 1\ndoes 36 0 running 1\n");
	assert_int_equal(thread_of(&x, 30)->role, ROLE_MAIN);
	assert_int_equal(thread_of(&x, 31)->role, ROLE_LOADER_WORKER);
	assert_int_equal(thread_of(&x, 32)->role, ROLE_PIN_THREAD);
	assert_int_equal(thread_of(&x, 33)->role, ROLE_FRAMEWORK_THREADS);
	assert_int_equal(thread_of(&x, 34)->role, ROLE_BLAS_THREADS);
	assert_int_equal(thread_of(&x, 35)->role, ROLE_LOADER_WORKER);
	assert_int_equal(thread_of(&x, 36)->role, ROLE_CHILD);
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 30));
	/* a worker that waits to be asked is idle */
	assert_true(close_to(thread_of(&x, 31)->state[TIME_IDLE], 4));
	assert_true(close_to(thread_of(&x, 31)->state[TIME_DATA_LOAD], 6));
	close_world(&x);
}

/* A launcher that waits, workers that wait for work, ranks: the one with most work of its own. */
static void critical(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "process 22 102 python3\nthread 32 22 102 python3\n"
		       "process 23 103 python3\nthread 33 23 103 python3\n"
		       "thread.cpu@31 0 4\nthread.cpu@32 0 7\n"
		       "thread.run_delay@31 0 0\nthread.run_delay@32 0 0\n"
		       "does 30 13 sleep 0.99\ndoes 31 4 running 0.4\ndoes 31 10 lock 0.6\n"
		       "does 32 4 running 0.7\ndoes 32 10 lock 0.3\ndoes 33 8 running 1\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 32));
	assert_int_equal(thread_of(&x, 31)->role, ROLE_MAIN);
	assert_int_equal(thread_of(&x, 33)->role, ROLE_LOADER_WORKER);
	/* what started the ranks is no child of theirs */
	assert_int_equal(thread_of(&x, 30)->role, ROLE_OTHER);
	close_world(&x);
	/* a third of a short run is the launcher's own start */
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "does 30 13 poll 0.66\ndoes 30 11 running 0.34\ndoes 31 4 running 0.4\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 31));
	close_world(&x);
	/* ...but one that waits for a child that does not train is no launcher */
	open_world(&x, "process 21 101 gzip\nthread 31 21 101 gzip\n"
		       "does 30 13 poll 0.66\ndoes 30 11 running 0.34\ndoes 31 0 running 1\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 30));
	close_world(&x);
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "does 30 0 child 1\ndoes 31 4 running 0.4\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 31));
	close_world(&x);
}

/* A training below a shell that loads for most of its time is no worker; one that a training started
 * to serve a queue is. */
static void loading_child(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "does 30 0 child 1\ndoes 31 3 running 0.8\ndoes 31 11 running 0.2\n");
	assert_int_equal(thread_of(&x, 31)->role, ROLE_MAIN);
	assert_true(close_to(thread_of(&x, 31)->state[TIME_DATA_LOAD], 8));
	close_world(&x);
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "place 30 /usr/lib/python3.9/multiprocessing/process.py 300 _bootstrap\n"
		       "stack 30 = 30 12\nstack 31 = 30 10\n"
		       "does 30 16 poll 0.9 on pipe\ndoes 30 11 running 0.1\n"
		       "does 31 30 running 0.9\ndoes 31 31 pipe 0.1\n");
	assert_int_equal(thread_of(&x, 31)->role, ROLE_LOADER_WORKER);
	assert_true(close_to(thread_of(&x, 31)->state[TIME_IDLE], 1));
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_WAIT], 9));
	close_world(&x);
	/* imports, and time without a stack, are most of a short life */
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "place 30 /usr/lib/python3.9/multiprocessing/process.py 300 _bootstrap\n"
		       "place 31 train.py 22 load_item\n"
		       "place 32 <frozen~importlib._bootstrap> 1176 _find_and_load\n"
		       "stack 32 = 30 31\nstack 33 = 32\n"
		       "does 30 11 running 1\ndoes 31 33 running 0.5\n"
		       "does 31 0 running 0.2\ndoes 31 32 running 0.3\n");
	assert_int_equal(thread_of(&x, 31)->role, ROLE_LOADER_WORKER);
	close_world(&x);
}

static void in_a_thread(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "thread 31 20 101 python3\nthread 32 20 102 python3\n"
		       "place 30 /usr/lib/python3.9/threading.py 1053 join\nstack 30 = 1 30\n"
		       "does 30 30 lock 1\ndoes 31 4 running 0.5\ndoes 31 2 lock 0.5\n"
		       "does 32 16 lock 1\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 31));
	assert_int_equal(thread_of(&x, 31)->role, ROLE_MAIN);
	assert_int_equal(thread_of(&x, 30)->role, ROLE_OTHER);
	/* a thread that waits to be given something all day: idle, and no loader */
	assert_int_equal(thread_of(&x, 32)->role, ROLE_OTHER);
	assert_true(close_to(thread_of(&x, 32)->state[TIME_IDLE], 10));
	close_world(&x);
}

/* The first thread has ended, soon or before it was ever seen, and others go on: by their work, Python
 * before any other. */
static void without_its_first(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "thread 31 20 101 python3\nthread 32 20 102 python3\n"
		       "thread 33 20 103 python3\n"
		       "thread.cpu@31 0 6\nthread.cpu@32 0 2\nthread.cpu@33 0 9\n"
		       "does 30 1 running 0.01\ndoes 31 4 running 0.6\ndoes 31 2 lock 0.4\n"
		       "does 32 11 running 0.2\ndoes 32 16 lock 0.8\ndoes 33 15 running 1\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 31));
	assert_int_equal(thread_of(&x, 31)->role, ROLE_MAIN);
	assert_int_equal(thread_of(&x, 30)->role, ROLE_OTHER);
	assert_int_equal(thread_of(&x, 33)->role, ROLE_BLAS_THREADS);
	close_world(&x);
	/* A program without Python, below a shell. */
	open_world(&x, "process 21 101 trainer\nthread 31 21 101 trainer\n"
		       "thread 32 21 102 trainer\nthread 33 21 103 trainer\n"
		       "thread.cpu@32 0 3\nthread.cpu@33 0 8\n"
		       "does 30 0 child 1\ndoes 32 0 running 0.3\ndoes 32 0 lock 0.7\n"
		       "does 33 0 running 0.8\ndoes 33 0 lock 0.2\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 33));
	assert_int_equal(thread_of(&x, 30)->role, ROLE_OTHER);
	close_world(&x);
	/* One that was seen as rarely as all the others is there. */
	open_world(&x, "thread 31 20 101 python3\n"
		       "does 30 4 running 0.3\ndoes 31 4 running 0.3\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 30));
	close_world(&x);
}

/* A thread the kernel put into the process. */
static void of_the_kernel(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "thread 31 20 101 iou-wrk-100\n"
		       "does 30 4 running 1\ndoes 31 0 running 1\n");
	assert_int_equal(thread_of(&x, 31)->role, ROLE_KERNEL_SIDE);
	close_world(&x);
}

/* A training that waits for nothing but the threads of its own pool does so in a loop of events. */
static void event_loop(void **state)
{
	static const char loop[] =
	    "place 60 /usr/lib/python3.11/selectors.py 468 EpollSelector.select\n"
	    "place 61 /usr/lib/python3.11/concurrent/futures/thread.py 58 _WorkItem.run\n"
	    "place 62 /usr/lib/python3.11/concurrent/futures/thread.py 83 _worker\n"
	    "stack 60 = 1 60\nstack 61 = 62 61 12\nthread 31 20 101 python3\n"
	    "thread.cpu@31 0 %s\nthread.run_delay@31 0 0\n"
	    "does 30 60 poll 0.9\ndoes 30 4 running 0.1\ndoes 31 61 running 1\n";
	struct world x;
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text), loop, "9.5");
	open_world(&x, text);
	assert_int_equal(thread_of(&x, 31)->role, ROLE_LOADER_WORKER);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_WAIT], 9));
	close_world(&x);
	/* a pool that does next to nothing: it waits for somebody else */
	snprintf(text, sizeof(text), loop, "0.5");
	open_world(&x, text);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_IDLE], 9));
	close_world(&x);
}

/* The same with a pool of processes; those of another process are nobody it waits for. */
static void event_loop_of_processes(void **state)
{
	static const char loop[] =
	    "place 60 /usr/lib/python3.11/selectors.py 468 EpollSelector.select\n"
	    "place 61 /usr/lib/python3.11/concurrent/futures/process.py 249 _process_worker\n"
	    "stack 60 = 1 60\nstack 61 = 61 12\nprocess 22 102 bash\n"
	    "process 21 101 python3 of %d\nthread 31 21 101 python3\n"
	    "thread.cpu@31 0 9.5\nthread.run_delay@31 0 0\n"
	    "does 30 60 poll 0.9\ndoes 30 4 running 0.1\ndoes 31 61 running 1\n";
	struct world x;
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text), loop, 20);
	open_world(&x, text);
	assert_int_equal(thread_of(&x, 31)->role, ROLE_LOADER_WORKER);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_DATA_WAIT], 9));
	close_world(&x);
	snprintf(text, sizeof(text), loop, 22);
	open_world(&x, text);
	assert_true(close_to(thread_of(&x, 30)->state[TIME_IDLE], 9));
	close_world(&x);
}

/* Folds side by side: who waits for their results trains nothing, though it waits as for data. */
static void results_are_awaited(void **state)
{
	struct world x;

	(void)state;
	open_world(&x, "process 21 101 python3\nthread 31 21 101 python3\n"
		       "place 60 /home/u/fold.py 9 fold source loss.backward()\nstack 60 = 60\n"
		       "does 30 16 pipe 0.99\ndoes 30 11 running 0.01\ndoes 31 60 running 0.5\n"
		       "does 31 4 running 0.5\n");
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 31));
	close_world(&x);
}

/* Trials in threads of one process: who hands them out and waits trains nothing. */
static void trials_in_threads(void **state)
{
	static const char threads[] = "thread 31 20 101 python3\nthread 32 20 102 python3\n"
				      "place 60 /home/u/sweep.py 9 trial source loss.backward()\n"
				      "place 61 " SITE "torch/autograd/__init__.py 200 backward\n"
				      "place 62 /home/u/sweep.py 40 main source rows = done.get()\n"
				      "stack 60 = 60 61\nstack 62 = 62\n";
	struct world x;
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text), "%s%s", threads,
		 "does 30 62 lock 0.97\ndoes 30 62 running 0.03\ndoes 31 60 running 0.5\n"
		 "does 31 12 running 0.4\ndoes 32 60 running 0.2\ndoes 32 12 running 0.1\n");
	open_world(&x, text);
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 31));
	assert_int_equal(thread_of(&x, 32)->role, ROLE_OTHER);
	close_world(&x);
	/* one that works itself is what it is, whoever else computes gradients */
	snprintf(text, sizeof(text), "%s%s", threads,
		 "does 30 12 running 0.6\ndoes 30 62 lock 0.4\ndoes 31 60 running 0.5\n");
	open_world(&x, text);
	assert_ptr_equal(&x.scene.activity.threads.v[x.scene.activity.critical], thread_of(&x, 30));
	close_world(&x);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles),
		cmocka_unit_test(critical),
		cmocka_unit_test(loading_child),
		cmocka_unit_test(in_a_thread),
		cmocka_unit_test(without_its_first),
		cmocka_unit_test(of_the_kernel),
		cmocka_unit_test(event_loop),
		cmocka_unit_test(event_loop_of_processes),
		cmocka_unit_test(results_are_awaited),
		cmocka_unit_test(trials_in_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 *
 * A job of which stacks are known, for the tests of what its threads did and are for.
 */
#ifndef SPOTTER_TESTS_ACTIVITY_WORLD_H
#define SPOTTER_TESTS_ACTIVITY_WORLD_H

#include "../unit.h"

#include "explain/scene.h"
#include "scenario.h"

#include <math.h>

/* Places and stacks of all tests; 10 s, one process of one thread. */
#define SITE "/usr/lib/python3/dist-packages/"
static const char base[] =
    "run 10\nexit 0\nmachine 4 1\nprocess 20 100 python3\nthread 30 20 100 python3\n"
    "place 1 /home/u/train.py 9 train source for b in loader:\n"
    "place 2 " SITE "torch/utils/data/dataloader.py 900 _try_get_data\n"
    "place 3 " SITE "torch/utils/data/dataloader.py 600 _SingleProcessDataLoaderIter._next_data\n"
    "place 4 /home/u/data.py 5 Photos.__getitem__ source return decode(x)\n"
    "place 5 " SITE "torch/nn/modules/module.py 1500 Module._call_impl\n"
    "place 6 /home/u/train.py 20 train source total += loss.item()\n"
    "place 7 /home/u/train.py 12 train source x = x.to(device)\n"
    "place 8 " SITE "torch/serialization.py 300 save\n"
    "place 9 " SITE "torch/utils/data/_utils/worker.py 308 _worker_loop\n"
    "place 10 /usr/lib/python3.11/multiprocessing/queues.py 103 Queue.get\n"
    "place 11 " SITE "torch/distributed/distributed_c10d.py 2000 all_reduce\n"
    "place 12 /home/u/data.py 30 helper source x += 1\n"
    "place 13 " SITE "torch/utils/data/_utils/pin_memory.py 50 _pin_memory_loop\n"
    "place 14 " SITE "torch/distributed/run.py 900 main\n"
    "place 15 " SITE "tqdm/std.py 1100 tqdm.__iter__\n"
    "place 16 /home/u/data.py 31 helper source y += 1\n"
    "native 20 /usr/lib/libcuda.so.1 cuStreamSynchronize\n"
    "native 21 /usr/lib/libjpeg.so.62 jpeg_read_scanlines\n"
    "native 22 /usr/lib/libgomp.so.1\n"
    "native 23 /usr/lib/libpython3.11.so.1.0 _PyEval_EvalFrameDefault\n"
    "stack 1 = 1\nstack 2 = 1 2\nstack 3 = 1 3 4\nstack 4 = 1 5\nstack 5 = 6\nstack 6 = 7\n"
    "stack 7 = 1 8\nstack 8 = 9 4 21\nstack 9 = 9 10\nstack 10 = 1 11\nstack 11 = 1 12\n"
    "stack 12 = 13\nstack 13 = 14\nstack 14 = 1 5 20\nstack 15 = 22\nstack 16 = 1 10\n"
    "stack 17 = 15 2\nstack 18 = 1 16\nstack 19 = 6 23\nstack 20 = 1 5 22\nstack 21 = 1 20\n";

struct world {
	struct scenario s;
	struct history *h;
	struct window w;
	struct scene scene;
};

/* run_level: what the recorder reached, 0: what a scenario has by itself */
static inline void open_world_at(struct world *x, const char *more, int run_level)
{
	char text[8192];

	*x = (struct world){ 0 };
	assert_true(snprintf(text, sizeof(text), "%s%s", base, more) < (int)sizeof(text));
	scenario_parse(&x->s, text);
	x->s.run.level = run_level ? run_level : x->s.run.level;
	x->h = scenario_play(&x->s, M_NONE, 0);
	x->w = history_window(x->h, 0);
	assert_int_equal(scene_open(&x->scene, &x->w, x->w.from_ns, x->w.to_ns), 0);
}

static inline void open_world(struct world *x, const char *more)
{
	open_world_at(x, more, 0);
}

static inline void close_world(struct world *x)
{
	scene_done(&x->scene);
	history_free(x->h);
	scenario_done(&x->s);
}

static inline const struct act_thread *thread_of(const struct world *x, uint32_t id)
{
	uint32_t at = 0;

	assert_true(map_get(&x->scene.activity.by_id, id, &at));
	return &x->scene.activity.threads.v[at];
}

static inline bool close_to(double a, double b)
{
	return fabs(a - b) < 1e-6;
}

#endif

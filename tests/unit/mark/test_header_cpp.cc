// SPDX-License-Identifier: MIT
//
// spotter.h is C++, too. Without a recorder: nothing happens.
#include <spotter.h>

#include <cmath>
#include <cstdlib>

int main()
{
	unsetenv("SPOTTER_MARKS");
	spotter_phase_begin("warm-up");
	spotter_step(NAN);
	spotter_step_number(17, 0.5);
	spotter_scalar("accuracy", 0.9);
	spotter_phase_end("warm-up");
	spotter_data_wait(1000);
	spotter_mark(SPOTTER_EPOCH, nullptr, 1, 0, 0);
	spotter_reset();
	return spotter_active();
}

// SPDX-License-Identifier: MIT
// The page of a run: the report's own, drawn again with each story the server sends.

let isMounted = false;

function drawRun({ live, state, story, remark }) {
	if (live)
		story.verdict.run.live = true;
	if (isMounted) {
		window.spotter.update(story);
	} else {
		const seen = remark ? ` Not all of it was seen: ${remark}.` : "";
		window.spotter.mount(story, { home: "/", foot: "Served by spotter serve, from the record as it is now." + seen });
		document.querySelector("header.bar .brand").after(sign);
		isMounted = true;
	}
	const ended = { interrupted: "Over: its recorder was stopped", detached: "Over: left running" };
	if (live)
		say("live", "Live");
	else
		say("ended", Object.hasOwn(ended, state) ? ended[state] : "Over");
}

function makeRun(id) {
	document.body.prepend(h("header.bar", { id: "waiting" }, h("a.brand", { href: "/", "aria-label": "Spotter: all runs" }, "spotter"), sign));
	sayInstead("Reading the record", "A long one takes a moment.");
	setTheme(themeNow());
	say("wait", "Connecting");
	const stream = feed("/events/" + id, {
		run: (answer) => {
			document.getElementById("waiting")?.remove();
			drawRun(answer);
		},
		done: () => stream.end(),
		gone: ({ why }) => {
			stream.end();
			say("lost", "Gone");
			if (!isMounted)
				sayInstead("There is no such run", sentence(why || "it was removed, or never was"));
		},
		trouble: ({ why }) => {
			say("lost", show(why || "The record cannot be read"));
			if (!isMounted)
				sayInstead("This record cannot be read", sentence(why || ""));
		},
	});
}

const run = document.body.dataset.run;
if (run)
	makeRun(run);
else
	makeList();

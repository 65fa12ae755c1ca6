// SPDX-License-Identifier: MIT
// Above the charts: phases as bands, events as marks, and the time under the cursor.

const LANE_ITEMS = 400; // more of them could not be told apart

function isBad(event) {
	return /oom|xid|hang|hung|kill|lost|fail|block|crash/i.test(event.kind || "");
}

// What is not the usual state of the run: only that is tinted in the charts.
function rarePhases({ phases, from, to }) {
	const lasted = new Map();
	for (const p of list(phases))
		lasted.set(p.name, (lasted.get(p.name) || 0) + p.to - p.from);
	return list(phases).filter((p) => lasted.get(p.name) < (to - from) / 3);
}

function makeLanes(host) {
	const phases = list(timeline.story.phases), events = list(timeline.story.events);
	const names = [...new Set(phases.map((p) => p.name))].slice(0, 20).join(", ");
	const lane = (what, items, label) => items.length ? h(what, { role: "img", "aria-label": label }) : null;
	timeline.lanes = {
		time: h("span.when", { hidden: true }),
		phases: lane("div.lane.phases", phases, "Phases: " + names),
		events: lane("div.lane.events", events, `${plural(events.length, "event")}, listed below the charts`),
	};
	add(host, h("div.lanes", null, h("div.lane.times", { "aria-hidden": "true" }, timeline.lanes.time), timeline.lanes.phases,
		timeline.lanes.events));
}

function drawLanes() {
	const { from, to } = seenRange(), { phases, events } = timeline.lanes || {};
	const at = (t) => (t - from) / (to - from) * 100;
	if (phases)
		add(empty(phases), list(timeline.story.phases).filter((p) => p.to > from && p.from < to).slice(0, LANE_ITEMS).map((p) => {
			const a = Math.max(0, at(p.from)), b = Math.min(100, at(p.to));
			return h("span.phase", { title: `${p.name}: ${seconds(p.to - p.from)}`, vars: { left: a + "%", width: b - a + "%" } },
				b - a > 3 && name(p.name));
		}));
	if (events)
		add(empty(events), list(timeline.story.events).filter((e) => e.t >= from && e.t <= to).slice(0, LANE_ITEMS).map((e) =>
			h(isBad(e) ? "span.mark.bad" : "span.mark", { title: `${clock(e.t)}: ${e.text || e.kind}`,
				vars: { left: at(e.t) + "%" } })));
}

// The step at that time, where steps are known.
function stepAt(t) {
	const times = list(timeline.steps?.t), steps = list(timeline.steps?.step);
	let low = 0, high = times.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (times[middle] <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? steps[low - 1] : undefined;
}

function sayTime(t) {
	const label = timeline.lanes?.time, { from, to } = seenRange();
	if (!label)
		return;
	label.hidden = t === null;
	if (t === null)
		return;
	const step = stepAt(t);
	label.textContent = clock(t, to - from) + (finite(step) ? `, step ${count(step)}` : "");
	label.style.setProperty("left", Math.min(100, Math.max(0, (t - from) / (to - from) * 100)) + "%");
}

function eventTable(source) {
	const around = timelineSpan() / 20, events = list(source.events).slice(0, LANE_ITEMS);
	const left = list(source.events).length - events.length + (source.events_left || 0);
	const when = (e, i) => typeof uPlot === "undefined" ? clock(e.t)
		: button(clock(e.t), () => showTime(e.t - around, e.t + around),
			{ "aria-label": `${clock(e.t)}: show it in the timeline`, class: "plain", "data-key": "event" + i });
	const heads = ["#Time", "Kind", "What happened"];
	return events.length > 0 && fold("events", plural(events.length, "event"), table("Events", heads,
		events.map((e, i) => h("tr", null, h("td.number", null, when(e, i)),
			h("td", null, h(isBad(e) ? "span.kind.bad" : "span.kind", null, e.kind)), h("td", null, e.text)))),
	left > 0 && h("p.small", null, `The record has ${count(left)} more.`));
}

function timelineSpan() {
	return timeline.whole ? timeline.whole.to - timeline.whole.from : 1;
}

// SPDX-License-Identifier: MIT
// The run over time: tracks under each other on one axis. What is drawn, the zoom, keys and buttons; the charts
// themselves are in 52-chart.js, phases and events in 54-lanes.js.

const GROUPS = ["gpu", "cpu", "memory", "io", "steps", "loss"];
const TRACKS_OF_A_GROUP = 4; // more of them (eight GPUs) are folded at first

// Lives as long as the page: zoom and cursor survive a new story.
const timeline = { view: null, whole: null, window: null, charts: [], lanes: null, time: null, all: false, steps: null };

// The tracks of the story, and steps and scalars where no track has them: they have times of their own.
function timelineTracks({ timeline: source, steps }) {
	const fits = (t, values) => Array.isArray(values) && values.length === t.length;
	const tracks = [];
	const push = (track, t) => {
		const series = list(track.series).filter((s) => fits(t, s.mean) && s.mean.some(finite))
			.map((s) => fits(t, s.min) && fits(t, s.max) ? s : { name: s.name, mean: s.mean });
		if (series.length)
			tracks.push({ ...track, t, series });
	};
	for (const track of list(source?.tracks))
		push(track, list(source.t));
	const has = (group) => tracks.some((track) => track.group === group);
	if (steps && !has("steps"))
		push({ id: "step_time", group: "steps", title: "Step time", unit: "s", series: [{ name: "step", mean: steps.seconds },
			{ name: "of it waiting for data", mean: steps.wait }] }, list(steps.t));
	const named = new Set(tracks.filter((track) => track.group === "loss").map((track) => track.title));
	list(steps?.scalars).filter((s) => !named.has(s.name)).forEach((s, i) => push({ id: "scalar-" + i, group: "loss",
		title: s.name, unit: "", series: [{ name: s.name, mean: s.v }] }, list(s.t)));
	const rank = (track) => (GROUPS.indexOf(track.group) + GROUPS.length + 1) % (GROUPS.length + 1);
	// Of several GPUs: how busy they all are, then how full.
	const kind = ({ group, id }) => group !== "gpu" || /_busy$/.test(id) ? 0 : /_memory$/.test(id) ? 1 : 2;
	return tracks.sort((a, b) => rank(a) - rank(b) || kind(a) - kind(b));
}

// Without those beyond the first few of their group.
function shownTracks(tracks) {
	const most = Math.max(TRACKS_OF_A_GROUP, tracks.filter((track) => /^gpu.*_busy$/.test(track.id)).length);
	const seen = new Map(), nth = (group) => seen.set(group, (seen.get(group) || 0) + 1).get(group);
	return timeline.all ? tracks : tracks.filter((track) => nth(track.group) <= most);
}

function knowTimeline({ timeline: source, steps, verdict }) {
	Object.assign(timeline, { window: verdict.window, steps, story: source, rare: rarePhases(source) });
}

function zoomTo(from, to) {
	const { whole } = timeline, span = whole.to - whole.from, least = span / 2000;
	if (to - from < least)
		[from, to] = [(from + to - least) / 2, (from + to + least) / 2];
	if (from < whole.from)
		[from, to] = [whole.from, to + whole.from - from];
	if (to > whole.to)
		[from, to] = [Math.max(whole.from, from + whole.to - to), whole.to];
	timeline.view = to - from > span * 0.999 ? null : { from, to };
	timelineMoved();
}

function zoomAll() {
	timeline.view = null;
	timelineMoved();
}

// Around the cursor, or the middle.
function zoomBy(factor) {
	const { from, to } = seenRange(), at = cursorTime() ?? (from + to) / 2;
	zoomTo(at - (at - from) * factor, at + (to - at) * factor);
}

function seenRange() {
	return timeline.view || timeline.whole;
}

function timelineMoved() {
	const { from, to } = seenRange();
	for (const chart of timeline.charts)
		chart.plot.setScale("x", { min: from, max: to });
	drawLanes();
	sayValues();
}

// Elsewhere on the page: shows these seconds.
function showTime(from, to) {
	if (!timeline.whole)
		return;
	zoomTo(from, to);
	document.getElementById("timeline").scrollIntoView({ block: "start" });
	timeline.host?.focus({ preventScroll: true });
}

function timelineKey(event) {
	const { from, to } = seenRange(), step = (to - from) / 100;
	const keys = {
		"+": () => zoomBy(0.5), "=": () => zoomBy(0.5), "-": () => zoomBy(2), 0: zoomAll, Escape: zoomAll,
		ArrowLeft: () => event.shiftKey ? zoomTo(from - 10 * step, to - 10 * step) : moveCursor(-step),
		ArrowRight: () => event.shiftKey ? zoomTo(from + 10 * step, to + 10 * step) : moveCursor(step),
	};
	if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key))
		return;
	event.preventDefault();
	keys[event.key]();
}

function moveCursor(by) {
	const { from, to } = seenRange(), at = Math.min(to, Math.max(from, (cursorTime() ?? (from + to) / 2) + by));
	setCursorTime(at);
	const figures = (chart) => chart.series.map((s) => s.figure.textContent).join(", ");
	const values = timeline.charts.slice(0, 8).map((chart) => `${chart.track.title}: ${figures(chart)}`);
	timeline.live.textContent = show(`${clock(at)}. ${values.join("; ")}`);
}

function timelineBar(verdict) {
	const w = verdict.window;
	return h("div.toolbar", null,
		button("−", () => zoomBy(2), { "aria-label": "Zoom out", "data-key": "zoom-out" }),
		button("+", () => zoomBy(0.5), { "aria-label": "Zoom in", "data-key": "zoom-in" }),
		button("All", zoomAll, { "aria-label": "All of the run", "data-key": "zoom-all" }),
		w && finite(w.from_s) && button("Window", () => zoomTo(w.from_s, w.to_s),
			{ "aria-label": "Window the findings are about", "data-key": "zoom-window" }),
		timeline.range = h("output.range", { "aria-label": "Shown" }),
		h("span.hint", null, "Drag to zoom, double-click for all. Keys: ← → cursor, + − zoom, 0 all."));
}

// Where uPlot could not be had when Spotter was built: the picture that the program made.
function timelinePicture(body) {
	const picture = timeline.picture ||= document.getElementById("timeline-svg");
	if (!picture)
		return add(body, absent("There is no chart: this Spotter was built without uPlot. " +
			"The record has the figures: spotter export."));
	picture.removeAttribute("hidden");
	return add(body, h("div.scroll.picture", { tabindex: "0", role: "region", "aria-label": "Picture of the timeline" },
		picture));
}

component("timeline", "Timeline", (body, story) => {
	const source = story.timeline, tracks = timelineTracks(story);
	dropCharts();
	timeline.whole = source && source.to > source.from ? { from: source.from, to: source.to } : null;
	if (!timeline.whole || !tracks.length)
		return add(body, absent("Absent: this record has no samples to draw."));
	if (typeof uPlot === "undefined")
		return add(timelinePicture(body), h("div", null, eventTable(source)));
	document.getElementById("timeline-svg")?.remove();
	knowTimeline(story);
	timeline.host = h("div.charts", { tabindex: "0", role: "group", "data-key": "charts", onkeydown: timelineKey,
		"aria-label": "Timeline. Arrow keys move the cursor, plus and minus zoom, 0 shows all" });
	timeline.live = h("p.hidden", { "aria-live": "polite" });
	const shown = shownTracks(tracks), left = tracks.length - shown.length;
	add(body, timelineBar(story.verdict), timeline.host, timeline.live,
		left > 0 && button(`Show ${plural(left, "more track")}`, () => {
			timeline.all = true;
			components.find((c) => c.id === "timeline").seen = null;
			update(current);
		}), h("div", null, eventTable(source)));
	makeLanes(timeline.host);
	makeCharts(timeline.host, shown);
	timelineMoved();
	return body;
}, (story) => [story.timeline, story.steps, story.verdict.window], (body, story) => {
	const tracks = shownTracks(timelineTracks(story)), same = (track, i) => {
		const old = timeline.charts[i]?.track;
		return old && old.id === track.id && old.series.length === track.series.length &&
			old.series.every((s, k) => !s.min === !track.series[k].min);
	};
	const lane = (kind) => !timeline.lanes?.[kind] === !list(story.timeline?.[kind]).length;
	if (timeline.all !== timeline.drawnAll || !tracks.length || tracks.length !== timeline.charts.length ||
		!tracks.every(same) || !lane("phases") || !lane("events"))
		return false;
	timeline.whole = { from: story.timeline.from, to: story.timeline.to };
	knowTimeline(story);
	tracks.forEach((track, i) => feedChart(timeline.charts[i], track));
	redraw(body.lastElementChild, (box) => add(box, eventTable(story.timeline)));
	timelineMoved();
	return true;
});

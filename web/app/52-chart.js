// SPDX-License-Identifier: MIT
// One uPlot chart for each track. They share the range of time and the cursor.

const AXIS = 58, RIGHT = 12, HEIGHT = 88, FOOT = 26; // pixels; lanes keep to the same sides (report.css)
const FONT = "11px system-ui, sans-serif";
const STEPS_OF_TIME = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
	1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800];
const MORE_LINES = ["--l-more1", "--l-more2", "--l-more3"];

function lineColor(track, i) {
	const own = GROUPS.includes(track.group) ? "--l-" + track.group : "--l-cpu";
	return i === 0 ? own : MORE_LINES[(i - 1) % MORE_LINES.length];
}

// From zero, as quantities are; a loss is not one. A limit far above what was used would flatten the line: it is said
// in the heading then, not drawn.
function valueRange(track, low, high) {
	if (!finite(low) || !finite(high))
		return [0, track.unit === "%" ? 100 : 1];
	if (track.unit === "%" && low >= 0 && high <= 100)
		return [0, 100];
	if (track.group === "loss" || low < 0) {
		const room = (high - low || Math.abs(high) || 1) * 0.08;
		return [low - room, high + room];
	}
	const limit = finite(track.limit) && track.limit <= 3 * high ? track.limit : 0;
	return [0, Math.max(high, limit) * 1.1 || 1];
}

function chartData(track) {
	return [track.t, ...track.series.flatMap((s) => s.min ? [s.mean, s.min, s.max] : [s.mean])];
}

// Phases and what lies outside of the window, below the lines.
function drawBackground(u) {
	const { left, top, width, height } = u.bbox, c = u.ctx;
	const fill = (from, to, color) => {
		const a = Math.max(left, u.valToPos(from, "x", true)), b = Math.min(left + width, u.valToPos(to, "x", true));
		c.fillStyle = color;
		if (b > a)
			c.fillRect(a, top, b - a, height);
	};
	for (const phase of timeline.rare)
		fill(phase.from, phase.to, ink.thin("--phase", 0.16));
	if (timeline.window && finite(timeline.window.from_s)) {
		const shade = ink.thin("--shade", Number(ink.of("--shading")));
		fill(timeline.whole.from, timeline.window.from_s, shade);
		fill(timeline.window.to_s, timeline.whole.to, shade);
	}
}

// The limit and events, above the lines.
function drawForeground(u, track) {
	const { left, top, width, height } = u.bbox, c = u.ctx, px = uPlot.pxRatio || devicePixelRatio || 1;
	const line = (x1, y1, x2, y2, color, dash) => {
		c.save();
		c.beginPath();
		c.setLineDash(dash.map((n) => n * px));
		c.lineWidth = px;
		c.strokeStyle = color;
		c.moveTo(x1, y1);
		c.lineTo(x2, y2);
		c.stroke();
		c.restore();
	};
	const events = list(timeline.story.events); // many ordinary ones would hide what is drawn: they are in their lane
	for (const event of events.length > 8 ? events.filter(isBad) : events) {
		const x = u.valToPos(event.t, "x", true);
		if (x >= left && x <= left + width)
			line(x, top, x, top + height, ink.of(isBad(event) ? "--bad" : "--event"), [2, 3]);
	}
	if (finite(track.limit) && track.limit <= u.scales.y.max && track.limit >= u.scales.y.min) {
		const y = u.valToPos(track.limit, "y", true);
		line(left, y, left + width, y, ink.of("--limit"), [5, 4]);
	}
}

function chartSeries(track) {
	const out = [{}];
	track.series.forEach((s, i) => {
		const color = lineColor(track, i), filled = track.series.length === 1 && track.group !== "loss" && !s.min;
		const bound = { stroke: "transparent", width: 0, points: { show: false }, scale: "y" };
		const lonely = s.mean.filter(finite).length < 3; // no line to be seen
		out.push({ stroke: () => ink.of(color), fill: filled ? () => ink.thin(color, 0.14) : undefined, width: 1.5, scale: "y",
			points: { show: lonely, size: 5, stroke: () => ink.of(color), fill: () => ink.of(color) } });
		if (s.min)
			out.push(bound, bound);
	});
	return out;
}

// Between least and most of each moment that stands for several.
function chartBands(track) {
	const out = [];
	let at = 1;
	track.series.forEach((s, i) => {
		if (s.min)
			out.push({ series: [at + 2, at + 1], fill: () => ink.thin(lineColor(track, i), 0.22) });
		at += s.min ? 3 : 1;
	});
	return out;
}

function chartOptions(track, width, isLast) {
	const grid = { stroke: () => ink.of("--grid"), width: 1 }, stroke = () => ink.of("--soft");
	return {
		width, height: HEIGHT + (isLast ? FOOT : 0), padding: [8, RIGHT, isLast ? 0 : 6, 0], legend: { show: false },
		scales: {
			x: { time: false, range: () => [seenRange().from, seenRange().to] },
			y: { range: (u, low, high) => valueRange(track, low, high) },
		},
		axes: [
			{ stroke, grid, font: FONT, size: isLast ? FOOT : 0, gap: 4, ticks: { show: false }, incrs: STEPS_OF_TIME, space: 70,
				values: (u, splits) => splits.map((s) => isLast ? clock(s, timeline.whole.to) : "") },
			{ stroke, grid, font: FONT, size: AXIS, gap: 6, ticks: { show: false }, space: 26,
				values: (u, splits) => splits.map((v) => quantity(v, track.unit === "cores" ? "" : track.unit)) },
		],
		series: chartSeries(track), bands: chartBands(track),
		cursor: {
			y: false, drag: { x: true, y: false, setScale: false, dist: 4 },
			points: { show: false },
			bind: { dblclick: () => () => zoomAll() },
		},
		hooks: {
			drawClear: [drawBackground], draw: [(u) => drawForeground(u, track)],
			setCursor: [cursorMoved], setSelect: [selected],
		},
	};
}

function selected(u) {
	const { left, width } = u.select;
	u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
	if (width > 3)
		zoomTo(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
}

// The other charts follow the one under the mouse.
function cursorMoved(u) {
	if (timeline.following)
		return;
	timeline.following = true;
	const left = u.cursor.left;
	timeline.time = left >= 0 ? u.posToVal(left, "x") : null;
	for (const chart of timeline.charts)
		if (chart.plot !== u)
			chart.plot.setCursor({ left, top: left < 0 ? -10 : 10 });
	timeline.following = false;
	sayValues();
}

function cursorTime() {
	return timeline.time;
}

function setCursorTime(t) {
	const first = timeline.charts[0]?.plot;
	first?.setCursor({ left: first.valToPos(t, "x"), top: 10 });
}

// At the cursor; without one, mean and most of what is shown.
function sayValues() {
	const { from, to } = seenRange(), t = cursorTime();
	if (timeline.range)
		timeline.range.textContent = `${clock(from, to - from)} – ${clock(to, to - from)}`;
	for (const chart of timeline.charts)
		chart.series.forEach((s) => {
			s.figure.textContent = t === null ? summary(chart.track, s.data, from, to)
				: valueAt(chart.track, s.data, chart.plot.cursor.idx, t, (to - from) / 50);
		});
	sayTime(t);
}

// The nearest value; its own time where that is not near.
function valueAt(track, data, i, t, near) {
	if (!finite(i) || !finite(data.mean[i]))
		return "absent";
	const far = Math.abs(track.t[i] - t) > near ? " at " + clock(track.t[i]) : "";
	const text = quantity(data.mean[i], track.unit) + far;
	return data.min && finite(data.min[i]) && data.max[i] > data.min[i]
		? `${text} (${quantity(data.min[i], track.unit)} to ${quantity(data.max[i], track.unit)})` : text;
}

function summary(track, data, from, to) {
	let sum = 0, n = 0, most = -Infinity, last;
	track.t.forEach((t, i) => {
		if (t < from || t > to || !finite(data.mean[i]))
			return;
		sum += data.mean[i];
		n++;
		most = Math.max(most, data.max && finite(data.max[i]) ? data.max[i] : data.mean[i]);
		last = data.mean[i];
	});
	if (!n)
		return "absent";
	return track.group === "loss" ? "last " + quantity(last, track.unit)
		: `mean ${quantity(sum / n, track.unit)}, most ${quantity(most, track.unit)}`;
}

function trackHead(track, series) {
	const one = series.length === 1, line = (what, color) => h(what, { "aria-hidden": "true", vars: { "--c": `var(${color})` } });
	return h("div.track-head", null, h("h3", null, name(track.title)),
		series.map((s, i) => h("span.value", null, line("span.line", lineColor(track, i)),
			h("span", null, !one && [name(s.data.name || ""), ": "], s.figure))),
		finite(track.limit) && h("span.value.limit", null, line("span.line.dashed", "--limit"),
			`${quantity(track.limit, track.unit)} ${track.limit_name || "allowed"}`));
}

function makeCharts(host, tracks) {
	tracks.forEach((track, i) => {
		const series = track.series.map((data) => ({ data, figure: h("span.figure") }));
		const box = h("div.chart", { role: "img", "aria-label": `Chart of ${track.title}: ` +
			track.series.map((s) => `${s.name || ""} ${summary(track, s, -Infinity, Infinity)}`).join("; ") });
		host.append(h("div.track", null, trackHead(track, series), box));
		const width = Math.max(200, box.clientWidth);
		const plot = new uPlot(chartOptions(track, width, i === tracks.length - 1), chartData(track), box);
		timeline.charts.push({ track, series, plot, box });
	});
	timeline.drawnAll = timeline.all;
	timeline.observer = new ResizeObserver(() => resizeCharts());
	timeline.observer.observe(host);
}

function resizeCharts(width = Math.max(200, timeline.charts[0]?.box.clientWidth || 0)) {
	for (const { plot } of timeline.charts)
		if (plot.width !== width)
			plot.setSize({ width, height: plot.height });
}

function feedChart(chart, track) {
	Object.assign(chart.track, track);
	chart.series.forEach((s, i) => { s.data = track.series[i]; });
	chart.plot.setData(chartData(track), false);
}

function repaintCharts() {
	for (const { plot } of timeline.charts)
		plot.redraw(false, true);
}

function dropCharts() {
	timeline.observer?.disconnect();
	timeline.charts.forEach((chart) => chart.plot.destroy());
	timeline.charts = [];
	timeline.time = null;
}

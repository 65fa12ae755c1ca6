// SPDX-License-Identifier: MIT
// Numbers as people say them; the same rules as the program's own text (src/base/num.c). Between a number and its unit
// stands a space that does not break.

const NBSP = "\u00a0";

function digits(value, n) {
	return value.toFixed(Math.max(0, n));
}

// Three significant digits at most: 0.123, 1.23, 12.3, 123
function three(value) {
	const size = Math.abs(value);
	if (size === 0 || size >= 99.95)
		return digits(value, 0);
	return digits(value, size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

function count(n) {
	return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

function bytes(n) {
	const units = ["B", "kB", "MB", "GB", "TB", "PB"];
	let i = 0;
	for (; Math.abs(n) >= 999.5 && i < units.length - 1; i++)
		n /= 1000;
	return (Math.abs(n) < 9.95 && i ? digits(n, 1).replace(/\.0$/, "") : digits(n, 0)) + NBSP + units[i];
}

function seconds(s) {
	const size = Math.abs(s), part = (n) => Math.floor(n + 1e-9);
	if (size === 0)
		return "0" + NBSP + "s";
	if (size < 0.0009995)
		return digits(s * 1e6, 0) + NBSP + "µs";
	if (size < 0.9995)
		return digits(s * 1e3, size < 0.00995 ? 1 : 0) + NBSP + "ms";
	if (size < 99.95)
		return digits(s, 1) + NBSP + "s";
	const [big, small, of, names] = size < 3600 ? [60, 1, 60, ["min", "s"]]
		: size < 86400 ? [3600, 60, 60, ["h", "min"]] : [86400, 3600, 24, ["d", "h"]];
	return [Math.trunc(s / big), names[0], part(size / small % of), names[1]].join(NBSP);
}

function percent(ratio) {
	const p = ratio * 100, size = Math.abs(p);
	if (size > 0 && size < 0.05)
		return "under" + NBSP + "0.1" + NBSP + "%";
	return (size === 0 || size >= 9.95 ? digits(p, 0) : digits(p, 1)) + NBSP + "%";
}

function cores(n) {
	if (n > 0 && n < 0.005)
		return "under" + NBSP + "0.01";
	return Math.abs(n - Math.round(n)) < 0.005 ? digits(n, 0) : digits(n, n >= 99.95 ? 0 : 2);
}

// ["15.1", "steps/s"], ["12.3 s", "per step"]
function stepRate(hz) {
	if (hz >= 99.5)
		return [count(hz), "steps/s"];
	return hz >= 1 ? [digits(hz, 1), "steps/s"] : [seconds(1 / hz), "per step"];
}

// A time of the run on an axis or beside an event: "12.3 s", "4:05", "2:04:05"
function clock(s, span) {
	if (Math.max(s, span || 0) < 120)
		return three(Math.round(s * 1000) / 1000) + NBSP + "s";
	const whole = Math.floor(s + 1e-6), two = (n) => String(n).padStart(2, "0");
	const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
	const part = span !== undefined && span < 30 ? digits(s - whole, 1).slice(1) : "";
	return (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(whole % 60) + part;
}

// A value of a track, by its unit.
function quantity(value, unit) {
	if (!finite(value))
		return "–";
	switch (unit) {
	case "%": return digits(value, Math.abs(value) < 9.95 && value ? 1 : 0) + NBSP + "%";
	case "cores": return cores(value) + NBSP + "cores";
	case "bytes": return bytes(value);
	case "bytes/s": return bytes(value) + "/s";
	case "s": return seconds(value);
	case "1/s": return three(value) + "/s";
	case "": case undefined: return Math.abs(value) >= 1e5 || (value && Math.abs(value) < 1e-3)
		? value.toExponential(2) : three(value);
	default: return three(value) + NBSP + show(unit);
	}
}

// "about 34 % faster (20 to 48 %)", "about 2.1 times as fast (1.7 to 2.2)"; where the figure is a bound from below,
// "at least ... (up to ...)"; where nobody knows how fast the better code will be, what it is at most. The words of the
// terminal's verdict.
function gainText(gain) {
	const { speedup, low, high, most } = gain;
	const isLeast = low >= speedup, isMost = high <= speedup * 1.01;
	const times = speedup >= 1.95 || (!isMost && high >= 2.95);
	const say = (x) => times ? digits(x, speedup < 9.95 ? 1 : 0) : digits((x - 1) * 100, 0);
	const unit = times ? "" : NBSP + "%";
	if (speedup < 1.005)
		return `next to nothing (up to ${digits((high - 1) * 100, 0)}${NBSP}%)`;
	let range = "", free = "";
	if (finite(most))
		free = (most > high * 1.02 ? `, ${say(most)}${unit}` : "") + " if that work cost nothing";
	if (isLeast && !isMost)
		range = ` (up to ${say(high)}${unit}${free})`;
	else if (!isLeast && high - low >= 0.005)
		range = ` (${say(low)} to ${say(high)}${unit}${free})`;
	return `${isLeast && !isMost ? "at least" : "about"} ${say(speedup)}${unit} ${times ? "times as fast" : "faster"}${range}`;
}

// With what limits it then; where no figure could be given, the words that stand for one.
function gainWords(gain) {
	if (!finite(gain?.speedup))
		return gain?.then || "";
	return gainText(gain) + (gain.then ? `; then ${gain.then}` : "");
}

// "2026-11-16T08:52:38.314Z" as the record has it: in UTC, whoever reads it.
function moment(iso) {
	const m = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(iso || "");
	return m ? `${m[1]} ${m[2]} UTC` : "";
}

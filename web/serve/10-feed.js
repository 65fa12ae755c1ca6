// SPDX-License-Identifier: MIT
// The dashboard: what the report's scripts (web/app) do not do. This file: the connection to the server, and what it says
// about itself at the top of the page.

const { h, add, name, show, list, finite, button, ink, themeButton, setTheme, themeNow, headline, howItEnded, sentence, plural,
	bytes, seconds, cores, stepRate, gainWords, NBSP } = window.spotter.kit;

const AGAIN = 10000; // ms: where the server has too many viewers

// The sign in the bar: is what is seen what is? kind: "live", "ended", "lost" or "wait".
const sign = h("p.sign", { role: "status", id: "sign" });

let good = null; // what it said before the connection was lost

function say(kind, words) {
	if (kind !== "lost")
		good = [kind, words];
	if (sign.dataset.kind === kind && sign.textContent === words)
		return;
	sign.dataset.kind = kind;
	sign.textContent = words;
}

// Server-sent events of an address. handlers: { event: data => ... }. A page that nobody sees asks for nothing: a browser
// has six connections to a server, whatever the number of its windows.
function feed(address, handlers) {
	let source = null, over = false, timer = 0;
	const close = () => {
		clearTimeout(timer);
		source?.close();
		source = null;
	};
	const open = () => {
		if (source || over || document.hidden)
			return;
		source = new EventSource(address);
		for (const [event, handle] of Object.entries(handlers))
			source.addEventListener(event, (message) => handle(JSON.parse(message.data)));
		source.onopen = () => good && say(...good); // nothing new may be sent for a while
		source.onerror = () => {
			if (source?.readyState === EventSource.CONNECTING)
				return say("lost", "No connection: is the server still there? Trying again.");
			close(); // it was there and refused
			ask();
			return undefined;
		};
	};
	// Why, in its own words; a stream that is refused tells a script nothing.
	const ask = async () => {
		let words = "";
		try {
			const answer = await fetch("/", { method: "HEAD" });
			words = answer.ok ? "Too many live pages are open. Trying again."
				: "This server does not know this page any more. Open the address that spotter serve printed last.";
		} catch {
			words = "No connection: is the server still there? Trying again.";
		}
		say("lost", words);
		timer = setTimeout(open, AGAIN);
	};
	document.addEventListener("visibilitychange", () => document.hidden ? close() : open());
	open();
	return {
		end() {
			over = true;
			close();
		},
	};
}

// Of one who came too early, or too late.
function sayInstead(title, words) {
	const main = document.getElementById("app");
	main.replaceChildren(h("section", { id: "instead" }, h("h1", null, title), h("p.lead", null, words),
		h("p", null, h("a", { href: "/" }, "All runs"))));
}

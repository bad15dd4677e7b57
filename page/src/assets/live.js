// Keeps what a page shows as it is now. The stream of a page names the parts that have changed, each with its version; a
// part that has this version already is left alone, so an event that comes late changes nothing. One request at a time
// fetches the others. A page without script, or whose stream is cut, shows what it was loaded with.
"use strict";
(() => {
  const main = document.querySelector("main[data-events]");
  if (!main || !window.EventSource) return;
  const news = document.getElementById("news");
  const say = (text) => { if (news.textContent !== text) news.textContent = text; };

  const parts = () => [...document.querySelectorAll("[data-version]")].map((part) => part.id);
  const rows = parts().map((id) => `&part=${id}`).join("");
  const stream = new EventSource(main.dataset.events + rows);

  let changed = new Set();
  let fetching = false;

  const fetchParts = async () => {
    if (fetching || changed.size === 0) return;
    fetching = true;
    const wanted = [...changed];
    changed = new Set();
    try {
      if (main.dataset.parts) {
        const path = main.dataset.parts + wanted.map((id) => `&part=${id}`).join("");
        await htmx.ajax("GET", path, { target: main, swap: "none" });
      } else {
        const others = wanted.filter((id) => id !== "standing").map((id) => `#${id}:outerMorph`).join(",");
        await htmx.ajax("GET", main.dataset.page, {
          target: "#standing", select: "#standing", selectOOB: others, swap: "outerMorph",
        });
      }
    } catch {
      // The next stream names these parts again.
    } finally {
      fetching = false;
    }
    fetchParts();
  };

  stream.onopen = () => say("");
  stream.onmessage = (event) => {
    for (const line of event.data.split("\n")) {
      const [id, version] = line.split(" ");
      if (id === "standing" && version.startsWith("gone")) {
        stream.close();
        say("The node does not exist any more. This page shows what it was.");
        return;
      }
      const part = document.getElementById(id);
      if (part && part.dataset.version !== version) changed.add(id);
    }
    fetchParts();
  };
  stream.onerror = () => {
    say(stream.readyState === EventSource.CLOSED
      ? "This page shows no changes any more. Load it again; you may have to sign in."
      : "The conductor does not answer. This page tries again.");
  };
})();

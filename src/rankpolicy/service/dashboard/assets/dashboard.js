// Reads the page again every other second and puts new charts and numbers in the place of the old ones.
"use strict";

(() => {
  const PERIOD = 2000;
  const main = document.querySelector("main[data-live-page]");
  const pause = document.getElementById("pause");
  if (!main || !pause) return;
  let paused = false;
  let busy = false;

  const parts = (root) => new Map([...root.querySelectorAll("[data-live]")].map((part) => [part.id, part]));

  const sameNames = (a, b) => a.size === b.size && [...a.keys()].every((name) => b.has(name));

  function show(fresh) {
    const now = parts(main);
    const next = parts(fresh);
    if (!sameNames(now, next)) {
      // A chart came or went. Whoever is reading with the keyboard keeps their place until they move on.
      if (!main.contains(document.activeElement)) main.replaceChildren(...fresh.childNodes);
      return;
    }
    for (const [name, part] of next) {
      const old = now.get(name);
      if (old.innerHTML !== part.innerHTML && !old.contains(document.activeElement)) {
        old.replaceChildren(...part.childNodes);
      }
    }
  }

  async function refresh() {
    if (paused || busy || document.hidden) return;
    busy = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error", cache: "no-store" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.querySelector("main[data-live-page]");
        if (fresh && !paused) show(fresh);
        document.body.classList.remove("stale");
      } else {
        document.body.classList.add("stale");
      }
    } catch {
      document.body.classList.add("stale");
    } finally {
      busy = false;
    }
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    pause.setAttribute("aria-pressed", String(paused));
  });
  setInterval(refresh, PERIOD);
})();

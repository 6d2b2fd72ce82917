// What the browser does alone: the address, copying, light and dark, and the tile under the pointer.
"use strict";

const SETTLED_MS = 1500; // changes nearer together than that are one step of the browser's "back"
const TYPING_MS = 150; // the text is looked at after a pause as long as that
let lastChange = 0;
let typing = null;

window.dash_clientside = Object.assign({}, window.dash_clientside, {
  explore: {
    address() {
      return { search: location.search };
    },
    settle(text) {
      if (typing) {
        clearTimeout(typing.timer);
        typing.drop(window.dash_clientside.no_update);
      }
      return new Promise((take) => {
        const timer = setTimeout(() => {
          typing = null;
          take(text);
        }, TYPING_MS);
        typing = { timer, drop: take };
      });
    },
    remember(query) {
      if (!query || location.search === "?" + query) return window.dash_clientside.no_update;
      const now = Date.now();
      const bare = location.search === "";
      history[bare || now - lastChange < SETTLED_MS ? "replaceState" : "pushState"]({}, "", "?" + query);
      lastChange = now;
      return window.dash_clientside.no_update;
    },
  },
});

// Dash compares stores by identity, so going back to the address it started from is a change, too.
window.addEventListener("popstate", () => {
  window.dash_clientside.set_props("address", { data: { search: location.search } });
});

const root = document.documentElement;

function dark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function remembered() {
  try {
    return localStorage.getItem("swizzle-sim-theme");
  } catch {
    return null; // storage is switched off
  }
}

async function copy(button, text) {
  const before = button.dataset.label || (button.dataset.label = button.textContent);
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = before), 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.id === "theme") {
    const theme = dark() ? "light" : "dark";
    root.dataset.theme = theme;
    try {
      localStorage.setItem("swizzle-sim-theme", theme);
    } catch {} // then it lasts as long as the page
  }
  if (button.id === "copy-link") copy(button, location.href);
  if (button.id === "copy-command") copy(button, document.getElementById("command").textContent);
});

function tileUnder(event) {
  const map = event.target.closest("img.map[data-xcd]");
  const says = document.getElementById("under-pointer");
  if (!says) return;
  if (!map) return;
  const box = map.getBoundingClientRect();
  const rows = Number(map.dataset.rows);
  const columns = Number(map.dataset.columns);
  const column = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
  const row = Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows)));
  const parts = [...document.querySelectorAll("img.map[data-xcd]")].map((one) => {
    const xcd = atob(one.dataset.xcd).charCodeAt(row * columns + column);
    return xcd === 255 ? "nobody" : "XCD " + xcd;
  });
  says.textContent = `tile (${row}, ${column}): ` + parts.join(" → ");
}

document.addEventListener("pointermove", tileUnder);
document.addEventListener("pointerdown", tileUnder);

const theme = remembered();
if (theme) root.dataset.theme = theme;

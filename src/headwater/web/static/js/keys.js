// The keyboard: j k o v m s r / ?
import { set, toggle } from "./posts.js";

let current = null;

function choose(entry) {
  if (!entry) return;
  current?.classList.remove("is-current");
  current = entry;
  entry.classList.add("is-current");
  entry.focus({ preventScroll: true });
  entry.scrollIntoView({ block: "nearest" });
}

function move(step) {
  const entries = [...document.querySelectorAll(".entry")];
  choose(entries[current ? entries.indexOf(current) + step : 0]);
}

function openText(entry) {
  const details = entry.querySelector("details.text");
  if (details) details.open = !details.open;
  else openArticle(entry);
}

function openArticle(entry) {
  set(entry, "read", true);
  window.open(entry.querySelector(".title a").href, "_blank", "noopener,noreferrer");
}

const actions = {
  j: () => move(1),
  k: () => move(-1),
  o: () => current && openText(current),
  Enter: () => current && openText(current),
  v: () => current && openArticle(current),
  m: () => current && toggle(current, "read"),
  s: () => current && toggle(current, "starred"),
  r: () => location.reload(),
  "/": () => document.getElementById("q")?.focus(),
  "?": () => document.getElementById("keys").showModal(),
};

function isForAnother(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return true;
  const inside = event.target.closest("input, textarea, select, [contenteditable]");
  // Enter on a link or button is for that link or button.
  return inside || (event.key === "Enter" && event.target !== current);
}

export function listenForKeys() {
  document.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    if (!action || isForAnother(event)) return;
    event.preventDefault();
    action();
  });
  document.addEventListener("focusin", (event) => {
    const entry = event.target.closest(".entry");
    if (entry && entry !== current) {
      current?.classList.remove("is-current");
      current = entry;
      entry.classList.add("is-current");
    }
  });
  document.getElementById("show-keys")?.addEventListener("click", actions["?"]);
}

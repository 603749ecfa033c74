// Reading in the stream: star, mark as read, open the text in place.
import { ask, askForHtml } from "./api.js";
import { notice } from "./notices.js";
import { said } from "./words.js";

const button = (entry, name) => entry.querySelector(`button[name="${name}"]`);
const isOn = (entry, name) => button(entry, name)?.getAttribute("aria-pressed") === "true";

function paint(entry, name, on) {
  const pressed = button(entry, name);
  pressed.setAttribute("aria-pressed", String(on));
  pressed.value = on ? "0" : "1";
  entry.classList.toggle(name === "read" ? "is-read" : "is-starred", on);
}

const repliesUntil = (entry) => (entry.dataset.repliesUntil ? [Number(entry.dataset.repliesUntil)] : []);
const hasNewReplies = (entry) => Number(entry.dataset.newReplies ?? 0) > 0;

const send = (entry, name, on, replies) =>
  ask(`/api/posts/${entry.dataset.post}`, "PATCH", { [name]: on, as_of: Number(entry.dataset.asOf), replies_until: replies });

export async function set(entry, name, on) {
  if (isOn(entry, name) === on) return;
  paint(entry, name, on);
  try {
    await send(entry, name, on, name === "read" && on ? repliesUntil(entry) : []);
  } catch (error) {
    paint(entry, name, !on);
    notice(error.message);
  }
}

// Whoever opens a post has read it, but not the replies to it: the entry is not read as long as it has new ones.
async function opened(entry) {
  if (!hasNewReplies(entry)) return set(entry, "read", true);
  try {
    await send(entry, "read", true, []);
  } catch (error) {
    notice(error.message);
  }
}

export const toggle = (entry, name) => set(entry, name, !isOn(entry, name));

async function fill(details) {
  if (details.dataset.filled) return;
  details.dataset.filled = "yes";
  try {
    const text = await askForHtml(details.dataset.text);
    details.querySelector(".content").replaceChildren(...text.body.childNodes);
  } catch (error) {
    delete details.dataset.filled;
    notice(error.message);
  }
}

async function markPage(form) {
  const entries = [...document.querySelectorAll(".entry:not(.is-read)")];
  const ids = entries.map((entry) => Number(entry.dataset.post));
  if (!ids.length) return;
  try {
    const asOf = Math.min(...entries.map((entry) => Number(entry.dataset.asOf)));
    await ask("/api/posts/mark", "POST", { ids, read: true, as_of: asOf, replies_until: entries.flatMap(repliesUntil) });
  } catch (error) {
    notice(error.message);
    return;
  }
  if (new URLSearchParams(location.search).has("unread")) {
    location.reload();
    return;
  }
  for (const entry of entries) paint(entry, "read", true);
  form.querySelector("button").disabled = true;
  notice(ids.length === 1 ? said("1 post marked as read.") : said("{count} posts marked as read.", { count: ids.length }));
}

function takeOver(entry) {
  if (entry.dataset.taken) return;
  entry.dataset.taken = "yes";
  entry.querySelector("[data-mark]").addEventListener("submit", (event) => {
    event.preventDefault();
    toggle(entry, event.submitter.name);
  });
  entry.querySelector(".title a").addEventListener("click", () => opened(entry));
  entry.querySelector("details.text")?.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    fill(event.target);
    opened(entry);
  });
}

export function takeOverPosts() {
  // May be called again when posts have been added to the page.
  for (const entry of document.querySelectorAll(".entry")) takeOver(entry);
  const form = document.querySelector("[data-mark-page]:not([data-taken])");
  if (!form) return;
  form.dataset.taken = "yes";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    markPage(form);
  });
}

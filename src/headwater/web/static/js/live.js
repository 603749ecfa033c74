// Says when new posts have arrived, and shows them without loading the page again. The server tells of them
// (server-sent events) while the page is in front; then it is asked which of them belong here, at most every two seconds.
import { ask, askForHtml } from "./api.js";
import { followEvents } from "./events.js";
import { notice } from "./notices.js";
import { takeOverPosts } from "./posts.js";
import { said } from "./words.js";

const MOST = 20;
const SETTLE = 300;
const LEAST_BETWEEN = 2_000;

let stream = null;
let timer = null;
let lookedAt = 0;

function countNew(stories) {
  // A story that was updated stands elsewhere: it counts as new.
  const known = new Set([...document.querySelectorAll(".entry")].map((entry) => entry.dataset.key));
  const place = stories.findIndex((story) => known.has(`${story.members[0].post_id}@${story.updated_at}`));
  return place < 0 ? stories.length : place;
}

function say(count) {
  const bar = document.getElementById("news");
  const many = count >= MOST ? said("{count} or more new posts", { count: MOST }) : said("{count} new posts", { count });
  bar.firstElementChild.textContent = count === 1 ? said("1 new post") : many;
  bar.hidden = count === 0;
}

async function look() {
  lookedAt = Date.now();
  const query = new URLSearchParams(location.search);
  query.set("limit", String(MOST));
  const { items } = await ask(`/api/stream?${query}`);
  if (stream.dataset.newest) say(countNew(items));
  else if (items.length) await showNew();
}

function lookSoon() {
  // Many events in a row make one look.
  if (timer) return;
  const wait = Math.max(SETTLE, lookedAt + LEAST_BETWEEN - Date.now());
  timer = setTimeout(() => {
    timer = null;
    look().catch(() => {}); // a server that is gone for a moment is asked when it is back
  }, wait);
}

async function showNew() {
  const page = await askForHtml(location.pathname + location.search);
  const fresh = page.getElementById("main");
  if (!fresh) return;
  for (const entry of fresh.querySelectorAll(".entry")) {
    // What was there stays as it is: opened, marked, focused.
    const old = document.getElementById(entry.id);
    if (old?.dataset.key === entry.dataset.key) entry.replaceWith(old);
  }
  stream.replaceChildren(...fresh.childNodes);
  stream.dataset.newest = fresh.dataset.newest;
  takeOverPosts();
  takeOverNews();
}

function takeOverNews() {
  document.querySelector("#news a").addEventListener("click", (event) => {
    event.preventDefault();
    showNew()
      .then(() => scrollTo({ top: 0 }))
      .catch((error) => notice(error.message));
  });
}

export function keepLive() {
  stream = document.querySelector("[data-live]");
  if (!stream) return;
  takeOverNews();
  followEvents(["post.stored"], lookSoon);
}

// Says when new posts have arrived. Looks every 30 s, more often while the page is still empty, never in the background.
import { ask } from "./api.js";

const LOOK = 30_000;
const LOOK_WHEN_EMPTY = 2_000;
const MOST = 20;

function countNew(stories, newest) {
  const place = stories.findIndex((story) => story.members.some((member) => String(member.post_id) === newest));
  return place < 0 ? stories.length : place;
}

function say(count) {
  const bar = document.getElementById("news");
  const many = count >= MOST ? `${MOST} or more new posts` : `${count} new posts`;
  bar.firstElementChild.textContent = count === 1 ? "1 new post" : many;
  bar.hidden = count === 0;
}

async function look(query, newest) {
  const { items } = await ask(`/api/stream?${query}`);
  if (!newest && items.length) location.reload();
  else say(newest ? countNew(items, newest) : 0);
}

export function keepLive() {
  const stream = document.querySelector("[data-live]");
  if (!stream) return;
  const newest = stream.dataset.newest;
  const query = new URLSearchParams(location.search);
  query.set("limit", String(MOST));
  const again = () => setTimeout(run, newest ? LOOK : LOOK_WHEN_EMPTY);
  async function run() {
    // A server that is gone for a moment is asked again later; the page stays as it is.
    if (!document.hidden) await look(query, newest).catch(() => {});
    again();
  }
  again();
}

// Adding, checking and leaving sources without loading the page again; rows follow their source until it has settled.
import { ask, askForHtml } from "./api.js";
import { notice } from "./notices.js";
import { said } from "./words.js";

const FIRST_LOOK = 700;
const SLOWEST_LOOK = 10_000;
const AT_ONCE = 50;
let wait = FIRST_LOOK;
let timer = null;

const row = (id) => document.getElementById(`source-${id}`);

async function fetchRows(ids) {
  const wanted = ids.map((id) => `id=${id}`);
  const attention = new URLSearchParams(location.search).get("attention");
  if (attention) wanted.push(`attention=${encodeURIComponent(attention)}`);
  const page = await askForHtml(`/sources/rows?${wanted.join("&")}`);
  const summary = page.querySelector("[data-summary]");
  const shown = document.querySelector("[data-summary]");
  if (shown && summary && shown.innerHTML !== summary.innerHTML) shown.replaceWith(summary);
  return new Map([...page.querySelectorAll("tr")].map((found) => [found.dataset.source, found]));
}

function replace(old, fresh) {
  const focused = old.contains(document.activeElement) && document.activeElement.closest("form")?.getAttribute("action");
  old.replaceWith(fresh);
  takeOver(fresh);
  if (focused) fresh.querySelector(`form[action="${focused}"] button`)?.focus();
}

function isVisible(element) {
  const box = element.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}

async function look() {
  const unsettled = [...document.querySelectorAll("tr[data-unsettled]")].filter(isVisible).slice(0, AT_ONCE);
  if (!document.hidden && unsettled.length) {
    const fresh = await fetchRows(unsettled.map((old) => old.dataset.source));
    for (const old of unsettled) {
      const found = fresh.get(old.dataset.source);
      if (!found) merge(old);
      else if (found.outerHTML !== old.outerHTML) {
        replace(old, found);
        wait = FIRST_LOOK;
      }
    }
  }
  wait = Math.min(wait * 1.3, SLOWEST_LOOK);
}

function merge(old) {
  // The feed behind a new address turned out to be one that is followed already.
  old.remove();
  notice(said("You follow this feed already, under another address."));
}

function follow() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    // A server that is gone for a moment is asked again later.
    await look().catch(() => {});
    if (document.querySelector("tr[data-unsettled]")) follow();
  }, wait);
}

function followSoon() {
  wait = FIRST_LOOK;
  follow();
}

async function show(id) {
  const fresh = (await fetchRows([id])).get(String(id));
  const old = row(id);
  if (!fresh) old?.remove();
  else if (old) replace(old, fresh);
  else {
    document.querySelector("#sources tbody").prepend(fresh);
    document.getElementById("sources").hidden = false;
    document.querySelector("[data-nothing]")?.remove();
    takeOver(fresh);
  }
  followSoon();
}

async function add(form) {
  const wrong = form.querySelector(".wrong");
  const address = form.elements.address;
  wrong.hidden = true;
  address.removeAttribute("aria-invalid");
  try {
    const body = { address: address.value, folder: form.elements.folder.value || null, kind: form.elements.kind?.value || null };
    const source = await ask("/api/sources", "POST", body);
    await show(source.id);
    address.value = "";
    notice(said("Added. Headwater is looking for the feed."));
  } catch (error) {
    wrong.textContent = error.message;
    const known = error.problem?.source_id;
    if (known) {
      const link = document.createElement("a");
      link.href = `/sources/${known}`;
      link.textContent = said("Show it");
      wrong.append(" ", link);
    }
    wrong.hidden = false;
    address.setAttribute("aria-invalid", "true");
    address.setAttribute("aria-describedby", "wrong");
  }
  address.focus();
}

async function refresh(id) {
  const { status } = await ask(`/api/sources/${id}/refresh`, "POST");
  if (status === "already_running") notice(said("It is being checked right now."));
  await show(id);
}

async function unfollow(old) {
  const name = old.querySelector(".name").textContent;
  await ask(`/api/sources/${old.dataset.source}`, "DELETE");
  old.remove();
  await fetchRows([]); // for the summary
  const wanted = { address: old.dataset.address, folder: old.dataset.folder || null };
  const again = async () => show((await ask("/api/sources", "POST", wanted)).id);
  notice(said("You no longer follow {name}.", { name }), { label: said("Follow again"), run: () => attempt(again) });
}

async function refreshAll() {
  const { asked } = await ask("/api/sources/refresh", "POST");
  for (const found of document.querySelectorAll("tr[data-source]")) found.dataset.unsettled = "";
  notice(asked === 1 ? said("1 source will be checked now.") : said("{count} sources will be checked now.", { count: asked }));
  followSoon();
}

const attempt = (work) => work().catch((error) => notice(error.message));

function on(form, work) {
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(work);
  });
}

function takeOver(found) {
  on(found.querySelector("[data-refresh]"), () => refresh(found.dataset.source));
  on(found.querySelector("[data-unfollow]"), () => unfollow(found));
}

export function takeOverSources() {
  if (!document.getElementById("sources")) return;
  const form = document.querySelector("[data-add]");
  on(form, () => add(form));
  on(document.querySelector("[data-refresh-all]"), refreshAll);
  for (const found of document.querySelectorAll("#sources tr[data-source]")) takeOver(found);
  if (document.querySelector("tr[data-unsettled]")) follow();
}

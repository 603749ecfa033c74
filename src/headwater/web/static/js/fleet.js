// The operator's page: works out "what if" while one types, and shows what changed elsewhere without loading again.
import { askForHtml } from "./api.js";
import { followEvents } from "./events.js";

const KINDS = [
  "miner.added", "miner.changed", "miner.removed", "miner.offline", "miner.recovered", "treasury.traded",
  "treasury.corrected", "forecast.refreshed",
];
const SETTLE = 150;
const HASHES_PER_PH_DAY = 8.64e19;
const HASHES_PER_DIFFICULTY = 2 ** 32;
const KWH_PER_WATT_DAY = 0.024;

let timer = null;

const money = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const usd = (value) => `${money.format(value).replace("-", "−")} USD`;

function given(form, name, otherwise) {
  const value = form.elements[name].valueAsNumber;
  return Number.isFinite(value) ? value : otherwise;
}

function workOut(form) {
  const { price, difficulty, subsidy, fees } = Object.fromEntries(
    Object.entries(form.dataset).map(([name, value]) => [name, Number(value)]),
  );
  if (!price) return; // nothing is known about the market
  const target = given(form, "difficulty", difficulty / 1e12) * 1e12;
  const blocks = HASHES_PER_PH_DAY / (target * HASHES_PER_DIFFICULTY);
  const hashprice = blocks * (subsidy + fees) * given(form, "price", price);
  const then = { revenue: 0, power: 0, losing: 0, machines: 0, best: 0 };
  for (const row of document.querySelectorAll("[data-machine]")) {
    const { quantity, hashrate, power, kwh } = row.dataset;
    const revenue = (quantity * hashrate * hashprice) / 1000;
    const cost = quantity * power * KWH_PER_WATT_DAY * given(form, "power", Number(kwh));
    then.revenue += revenue;
    then.power += cost;
    then.machines += Number(quantity);
    if (revenue < cost) then.losing += Number(quantity);
    else then.best += revenue - cost;
  }
  show("profit", usd(then.revenue - then.power));
  show("revenue", usd(then.revenue));
  show("power", usd(then.power));
  show("losing", `${then.losing.toLocaleString("en")} of ${then.machines.toLocaleString("en")}`);
  show("best", usd(then.best));
}

function show(name, words) {
  document.querySelector(`[data-then="${name}"]`).textContent = words;
}

async function refresh() {
  const page = await askForHtml(location.pathname + location.search);
  const fresh = page.getElementById("main");
  const shown = document.getElementById("main");
  if (!fresh || !shown) return;
  const typed = [...shown.querySelectorAll("input[id]")]
    .filter((input) => input.value !== input.defaultValue)
    .map((input) => [input.id, input.value]);
  const focused = document.activeElement?.id;
  const opened = [...shown.querySelectorAll("details")].map((one) => one.open);
  shown.replaceChildren(...fresh.childNodes);
  shown.querySelectorAll("details").forEach((one, place) => (one.open = opened[place] ?? false));
  for (const [id, value] of typed) {
    const input = document.getElementById(id);
    if (input) input.value = value;
  }
  if (focused) document.getElementById(focused)?.focus();
  takeOver();
}

function refreshSoon() {
  // Many events in a row make one request.
  if (timer) return;
  timer = setTimeout(() => {
    timer = null;
    refresh().catch(() => {}); // a server that is gone for a moment is asked when it is back
  }, SETTLE);
}

function takeOver() {
  const form = document.querySelector("[data-what-if]");
  if (!form) return;
  form.addEventListener("input", () => workOut(form));
  form.addEventListener("submit", (event) => event.preventDefault());
  workOut(form);
}

export function watchFleet() {
  if (!document.querySelector("[data-fleet]")) return;
  takeOver();
  followEvents(KINDS, refreshSoon);
}

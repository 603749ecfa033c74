// "5 min ago" stays true while the page is open.
import { said } from "./words.js";

const MINUTE = 60_000;

function ago(then) {
  const minutes = Math.floor((Date.now() - then) / MINUTE);
  if (minutes < 1) return said("just now");
  if (minutes < 60) return said("{span} ago", { span: said("{count} min", { count: minutes }) });
  return said("{span} ago", { span: said("{count} h", { count: Math.floor(minutes / 60) }) });
}

function refresh() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const passed = Date.now() - Date.parse(time.dateTime);
    if (passed >= 0 && passed < 24 * 60 * MINUTE) time.textContent = ago(Date.parse(time.dateTime));
  }
}

export function keepTimesRight() {
  setInterval(refresh, MINUTE);
}

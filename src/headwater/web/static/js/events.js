// Follows live events of some kinds (server-sent events) while the page is in front.
const COME_AGAIN = 30_000;

// `look` is called for each event, and for each new connection: things may have changed before it was there.
export function followEvents(kinds, look) {
  let source = null;
  let lastId = "";

  function connect() {
    if (source || document.hidden) return;
    const since = lastId ? `&last_event_id=${lastId}` : "";
    source = new EventSource(`/api/live?kinds=${kinds.join(",")}${since}`);
    source.addEventListener("open", look);
    for (const kind of [...kinds, "reset"]) {
      source.addEventListener(kind, (event) => {
        lastId = event.lastEventId;
        look();
      });
    }
    source.addEventListener("error", () => {
      // A lost connection the browser makes again by itself; a refused one is ours to try again, much later.
      if (source?.readyState === EventSource.CLOSED) {
        disconnect();
        setTimeout(connect, COME_AGAIN * (1 + Math.random()));
      }
    });
  }

  function disconnect() {
    source?.close();
    source = null;
  }

  // A browser has few connections for one server: pages that nobody sees leave theirs to the others.
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
  connect();
}

/** What a browser page tells about its network and its life; nothing where there is no page. */

/** What the page calls. */
export interface PageHooks {
  /** The network may have changed, or the page is looked at again. */
  onDoubt(): void;
  /** The page goes to the back/forward cache: an open connection would keep it out. */
  onHide(): void;
  /** The page is back from the cache. */
  onShow(): void;
}

/** Listens to the page; the returned function ends that. */
export function listen(hooks: PageHooks): () => void {
  if (typeof document === "undefined" || typeof globalThis.addEventListener !== "function") {
    return () => {};
  }
  const ended = new AbortController();
  const { signal } = ended;
  const onVisible = () => {
    if (document.visibilityState === "visible") hooks.onDoubt();
  };
  globalThis.addEventListener("online", () => hooks.onDoubt(), { signal });
  // An offline event may be wrong, for example with a server on this machine: ask, don't believe.
  globalThis.addEventListener("offline", () => hooks.onDoubt(), { signal });
  document.addEventListener("visibilitychange", onVisible, { signal });
  globalThis.addEventListener(
    "pagehide",
    (event) => {
      if ((event as PageTransitionEvent).persisted) hooks.onHide();
    },
    { signal },
  );
  globalThis.addEventListener(
    "pageshow",
    (event) => {
      if ((event as PageTransitionEvent).persisted) hooks.onShow();
    },
    { signal },
  );
  return () => ended.abort();
}

/**
 * The stream transport: the sync protocol over SSE and plain requests, for networks that let no
 * socket through.
 *
 * To the rest of the client it looks like a socket: it takes the same frames and answers them. A
 * subscription is a scope on a stream, one stream per feed, because an SSE id is one position. A
 * new scope reopens the stream of its feed from the oldest position on it; what comes twice by
 * that is skipped further up. A publish is a POST. A greeting is `GET /v1/whoami`, since nothing
 * may be watched yet.
 *
 * The end of any stream is the end of the whole transport: coming back is decided in one place.
 * A scope that is refused among others is asked for again alone, so that the others live.
 */

import type { Clock } from "./clock.js";
import { parse as parseCursor } from "./cursor.js";
import { EventStreamParser, type StreamEvent } from "./event-stream.js";
import { isFields, PROTOCOL_VERSION, readError } from "./frames.js";
import type { ClientFrame, ErrorFrame } from "./frames.js";
import * as scopes from "./scope.js";
import { Feed, type Place } from "./sse-feed.js";
import { CLOSE_ABNORMAL, type Transport, type TransportEvents } from "./transport.js";

/** What streams are opened with. */
export interface StreamConfig {
  /** The address that ends in `/v1/`. */
  base: URL;
  fetch: typeof fetch;
  clock: Clock;
}

const CLOSE_REFUSED = 1008;

/** Answers that another attempt would only repeat. */
const FINAL_STATUSES = [204, 400, 403, 404, 405, 410, 422];

/** Opens the transport; no request is made before the first frame. */
export function openStreams(config: StreamConfig, events: TransportEvents): Transport {
  const transport = new StreamTransport(config, events);
  queueMicrotask(() => transport.start());
  return transport;
}

class StreamTransport implements Transport {
  readonly #config: StreamConfig;
  readonly #events: TransportEvents;
  readonly #ended = new AbortController();
  readonly #feeds = new Set<Feed>();
  #token: string | undefined;
  #isOver = false;

  constructor(config: StreamConfig, events: TransportEvents) {
    this.#config = config;
    this.#events = events;
  }

  start(): void {
    if (!this.#isOver) this.#events.onOpened();
  }

  send(frame: ClientFrame): void {
    if (this.#isOver) return;
    switch (frame.t) {
      case "hello":
        this.#token = frame.token;
        void this.#greet();
        break;
      case "token":
        this.#token = frame.token;
        break;
      case "subscribe":
        this.#feedFor(frame).add(frame.scope, {
          id: frame.id,
          cursor: frame.since,
          minGapMs: frame.min_gap_ms,
        });
        break;
      case "unsubscribe":
        this.#remove(frame.scope);
        this.#emit({ t: "ack", id: frame.id, scope: frame.scope, resumed: false, ended: true });
        break;
      case "publish":
        void this.#publish(frame);
        break;
      case "beat":
        // A stream can't be asked for a sign of life; the server's own heartbeat is one. Where
        // there is no stream, because every scope was refused, there is nothing to be dead.
        if (this.#feeds.size === 0) this.#events.onHeard(this.#config.clock.now());
        break;
    }
  }

  close(): void {
    this.#isOver = true;
    this.#ended.abort();
    for (const feed of this.#feeds) feed.stop();
    this.#feeds.clear();
  }

  #end(code: number, delayMs?: number): void {
    if (this.#isOver) return;
    if (delayMs !== undefined) this.#emit({ t: "reconnect", delayMs, cursors: new Map() });
    this.close();
    this.#events.onClosed(code);
  }

  #emit(frame: Parameters<TransportEvents["onFrame"]>[0]): void {
    if (!this.#isOver) this.#events.onFrame(frame);
  }

  async #greet(): Promise<void> {
    const answer = await this.#request("whoami", {});
    if (answer === undefined) return;
    if (answer.status === 401) return this.#refuseAll(await readRefusal(answer));
    if (answer.status === 429 || answer.status >= 500) {
      return this.#end(CLOSE_ABNORMAL, (await readRefusal(answer)).retryAfterMs);
    }
    answer.body?.cancel().catch(() => {});
    this.#emit({ t: "hello", v: PROTOCOL_VERSION });
  }

  async #publish(frame: Extract<ClientFrame, { t: "publish" }>): Promise<void> {
    const answer = await this.#request(`channels/${frame.channel}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ event: frame.event, data: frame.data }),
    });
    if (answer === undefined) return;
    if (!answer.ok) return this.#emit({ ...(await readRefusal(answer)), id: frame.id });
    const body: unknown = await answer.json().catch(() => undefined);
    const cursor = parseCursor(isFields(body) ? body["cursor"] : undefined);
    this.#emit({ t: "ack", id: frame.id, resumed: false, ended: false, ...(cursor && { cursor }) });
  }

  /** Sends a request; one that gets no answer ends the transport, unless that is over anyway. */
  async #request(path: string, init: RequestInit): Promise<Response | undefined> {
    try {
      const answer = await this.#fetch(new URL(path, this.#config.base), init, this.#ended.signal);
      if (this.#isOver) return undefined;
      this.#events.onHeard(this.#config.clock.now());
      return answer;
    } catch {
      this.#end(CLOSE_ABNORMAL);
      return undefined;
    }
  }

  #fetch(url: URL, init: RequestInit, signal: AbortSignal): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.#token !== undefined) headers.set("Authorization", `Bearer ${this.#token}`);
    // Called as a plain function: a browser's fetch refuses any other `this`.
    const { fetch } = this.#config;
    return fetch(url, { ...init, headers, signal, cache: "no-store" });
  }

  #feedFor({ scope, since }: { scope: string; since?: string }): Feed {
    const name = scopes.feedOf(scope);
    for (const feed of this.#feeds) if (feed.admits(name, since)) return feed;
    return this.#addFeed(name, false);
  }

  #addFeed(name: string, isAlone: boolean): Feed {
    const open = () => void this.#read(feed);
    const feed: Feed = new Feed(name, isAlone, open, (frame) => this.#emit(frame));
    this.#feeds.add(feed);
    return feed;
  }

  #remove(scope: string): void {
    for (const feed of this.#feeds) {
      if (feed.remove(scope) && feed.isEmpty) {
        feed.stop();
        this.#feeds.delete(feed);
      }
    }
  }

  /** Opens the stream of a feed and reads it to its end. */
  async #read(feed: Feed): Promise<void> {
    const signal = feed.restart();
    feed.heardAt = this.#config.clock.now();
    try {
      const headers = { Accept: "text/event-stream" };
      const answer = await this.#fetch(feed.address(this.#config.base), { headers }, signal);
      if (signal.aborted) return;
      if (!isStream(answer)) return await this.#handleRefusal(feed, answer);
      feed.handleOpened(answer.headers.get("Tidings-Cursor"));
      await this.#readBody(feed, answer, signal);
    } catch {
      if (!signal.aborted) this.#end(CLOSE_ABNORMAL);
    }
  }

  async #readBody(feed: Feed, answer: Response, signal: AbortSignal): Promise<void> {
    const parser = new EventStreamParser();
    const decoder = new TextDecoder();
    const reader = answer.body!.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (signal.aborted) return;
      if (done) break;
      feed.heardAt = this.#config.clock.now();
      this.#events.onHeard(Math.min(...[...this.#feeds].map((each) => each.heardAt)));
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        if (!this.#dispatch(feed, event, parser)) return;
      }
    }
    this.#end(CLOSE_ABNORMAL, parser.retryMs);
  }

  /** False if the stream is over by this event. */
  #dispatch(feed: Feed, event: StreamEvent, parser: EventStreamParser): boolean {
    if (event.event !== "closing" && event.event !== "error") {
      feed.handleEvent(event);
      return !this.#isOver;
    }
    const fields = parseFields(event.data);
    const error = readError(fields);
    if (event.event === "error" && error.ended && error.scope !== undefined) {
      this.#emit(error);
      return !this.#isOver;
    }
    this.#end(CLOSE_ABNORMAL, error.retryAfterMs ?? parser.retryMs);
    return false;
  }

  async #handleRefusal(feed: Feed, answer: Response): Promise<void> {
    const error = await readRefusal(answer);
    if (answer.status === 401) return this.#refuseAll(error);
    if (!FINAL_STATUSES.includes(answer.status)) {
      return this.#end(CLOSE_ABNORMAL, error.retryAfterMs);
    }
    const places = [...feed.places];
    feed.stop();
    this.#feeds.delete(feed);
    if (places.length > 1) return this.#isolate(feed.name, places);
    for (const [scope, { id }] of places) {
      this.#emit({ ...error, id, scope, retry: false, ended: true });
    }
  }

  #isolate(name: string, places: [string, Place][]): void {
    for (const [scope, place] of places) this.#addFeed(name, true).add(scope, place);
  }

  #refuseAll(error: ErrorFrame): void {
    this.#emit(error);
    this.#end(CLOSE_REFUSED);
  }
}

function isStream(answer: Response): boolean {
  const type = answer.headers.get("Content-Type") ?? "";
  return answer.status === 200 && answer.body !== null && type.startsWith("text/event-stream");
}

async function readRefusal(answer: Response): Promise<ErrorFrame> {
  const body: unknown = await answer.json().catch(() => undefined);
  const fields = isFields(body) && isFields(body["error"]) ? body["error"] : {};
  const code = answer.status === 401 ? "unauthorized" : "refused";
  const seconds = Number(answer.headers.get("Retry-After") ?? NaN);
  return readError({
    code,
    message: `the server answered ${answer.status}`,
    retry_after_ms: seconds * 1_000,
    ...fields,
  });
}

function parseFields(data: string | undefined): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(data ?? "");
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
}

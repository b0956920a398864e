/** What a transport is to the rest of the client, and which one to try next. */

import type { ClientFrame, ServerFrame } from "./frames.js";

/** The ways to a server. */
export type TransportKind = "socket" | "sse";

/** Which transport may be used. `auto` takes SSE where a socket does not get through. */
export type Preference = "auto" | TransportKind;

/** An open way to the server. After `close` it says nothing more. */
export interface Transport {
  /** Sends one frame; one sent after the end is dropped. */
  send(frame: ClientFrame): void;
  close(code: number, reason: string): void;
}

/** What a transport reports. `onClosed` comes once and last. */
export interface TransportEvents {
  onOpened(): void;
  /** Something arrived at `at`, be it a frame or only a sign of life. */
  onHeard(at: number): void;
  onFrame(frame: ServerFrame): void;
  onClosed(code: number): void;
}

/** The close code that stands for "no close frame came". */
export const CLOSE_ABNORMAL = 1006;

/** Sockets that fail in a row before a stream is tried: one may fail as the server restarts. */
const SOCKET_TRIES = 2;

/**
 * The same where sockets have worked: a server that comes back refuses many at first, and they must
 * not all turn to streams for that. It is about half a minute.
 */
const PROVEN_SOCKET_TRIES = 8;

/** Picks the transport of the next dial. */
export class TransportChoice {
  readonly #preference: Preference;
  #failures = 0;
  #last: TransportKind = "socket";
  #greeted = new Set<TransportKind>();

  constructor(preference: Preference) {
    this.#preference = preference;
  }

  /**
   * The next transport. A network that lets streams through and never a socket stays with streams;
   * where nothing has worked yet the two take turns, so that a server that is merely down is found
   * again by either.
   */
  next(): TransportKind {
    this.#last = this.#preference === "auto" ? this.#pick() : this.#preference;
    return this.#last;
  }

  /** The last pick got through. */
  handleGreeted(): void {
    this.#greeted.add(this.#last);
    this.#failures = 0;
  }

  /** The last pick did not get through. */
  handleFailed(): void {
    this.#failures += 1;
  }

  #pick(): TransportKind {
    if (this.#greeted.has("sse") && !this.#greeted.has("socket")) return "sse";
    const tries = this.#greeted.has("socket") ? PROVEN_SOCKET_TRIES : SOCKET_TRIES;
    if (this.#failures < tries) return "socket";
    return this.#last === "socket" ? "sse" : "socket";
  }
}

/**
 * Events on their way to the server, each until its answer.
 *
 * An event waits for a live connection, is sent once, and is answered, refused, or lost with its
 * connection; it is never sent twice, because a second time would be a second event.
 */

import type { Cursor } from "./cursor.js";
import { TidingsError } from "./errors.js";
import type { ClientFrame, ErrorFrame } from "./frames.js";
import { errorOf } from "./subscription.js";

/** Events without an answer; one more is refused. */
export const UNANSWERED_MAX = 1_000;

/** How long an event waits for a connection and its answer together. */
export const ANSWER_LIMIT_MS = 10_000;

/** The server ends a connection for a longer frame. */
export const FRAME_BYTES_MAX = 256 * 1024;

/** What the server says of an event it has taken; with history, where it stands there. */
export interface Published {
  cursor?: Cursor;
}

interface Publish {
  readonly frame: ClientFrame & { t: "publish" };
  readonly dueAt: number;
  readonly resolve: (published: Published) => void;
  readonly reject: (error: TidingsError) => void;
  isSent: boolean;
}

/** See the module. */
export class Publishes {
  readonly #pending = new Map<string, Publish>();
  #send: ((frame: ClientFrame) => void) | undefined;

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** Sends an event as soon as there is a connection. */
  add(frame: ClientFrame & { t: "publish" }, now: number): Promise<Published> {
    const error = this.#whyNot(frame);
    if (error !== undefined) return Promise.reject(error);
    return new Promise((resolve, reject) => {
      const publish = { frame, dueAt: now + ANSWER_LIMIT_MS, resolve, reject, isSent: false };
      this.#pending.set(frame.id, publish);
      this.#flush();
    });
  }

  handleLive(send: (frame: ClientFrame) => void): void {
    this.#send = send;
    this.#flush();
  }

  handleLost(): void {
    this.#send = undefined;
    for (const publish of [...this.#pending.values()]) {
      const message = "the connection went before the answer";
      if (publish.isSent) this.#reject(publish, "connection-lost", message);
    }
  }

  handleAck(id: string, cursor: Cursor | undefined): void {
    const publish = this.#take(id);
    publish?.resolve(cursor === undefined ? {} : { cursor });
  }

  /** False if the error is about no event of ours. */
  handleError(frame: ErrorFrame): boolean {
    const publish = frame.id === undefined ? undefined : this.#take(frame.id);
    publish?.reject(errorOf(frame, `channel:${publish.frame.channel}`));
    return publish !== undefined;
  }

  handleTime(now: number): void {
    for (const publish of [...this.#pending.values()]) {
      if (now >= publish.dueAt) this.#reject(publish, "timeout", "no answer in time");
    }
  }

  /** When `handleTime` has something to do. Older events are due first. */
  nextAt(): number | undefined {
    for (const { dueAt } of this.#pending.values()) return dueAt;
    return undefined;
  }

  /** Everything is over. */
  rejectAll(error: TidingsError): void {
    this.#send = undefined;
    for (const publish of [...this.#pending.values()]) this.#take(publish.frame.id)?.reject(error);
  }

  #whyNot(frame: ClientFrame): TidingsError | undefined {
    if (this.#pending.size >= UNANSWERED_MAX) {
      const message = `${UNANSWERED_MAX} events wait for an answer`;
      return new TidingsError("queue-full", message, { retry: true });
    }
    try {
      const bytes = new TextEncoder().encode(JSON.stringify(frame)).length;
      if (bytes <= FRAME_BYTES_MAX) return undefined;
      const message = `an event longer than ${FRAME_BYTES_MAX} bytes as JSON`;
      return new TidingsError("bad-request", message);
    } catch (cause) {
      return new TidingsError("bad-request", "the data cannot be written as JSON", { cause });
    }
  }

  #flush(): void {
    if (this.#send === undefined) return;
    for (const publish of this.#pending.values()) {
      if (publish.isSent) continue;
      publish.isSent = true;
      this.#send(publish.frame);
    }
  }

  #reject(publish: Publish, code: "connection-lost" | "timeout", message: string): void {
    const scope = `channel:${publish.frame.channel}`;
    const error = new TidingsError(code, message, { retry: !publish.isSent, scope });
    this.#take(publish.frame.id)?.reject(error);
  }

  #take(id: string): Publish | undefined {
    const publish = this.#pending.get(id);
    this.#pending.delete(id);
    return publish;
  }
}

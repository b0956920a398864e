/**
 * A watch: one or several scopes followed by one consumer.
 *
 * It starts when it is iterated, when `open()` is called, or at once if it was given a callback;
 * before that it is `pending` and costs nothing, also where a page is rendered on a server.
 * `cursors` say what the consumer has been handed: store them, and give them back as `since`.
 */

import { parse as parseCursor, type Cursor } from "./cursor.js";
import { Delivery } from "./delivery.js";
import { TidingsError } from "./errors.js";
import { checked } from "./limits.js";
import type { GapNotice, Notice, StateNotice, WatchState } from "./notice.js";
import { Opening } from "./opening.js";
import { canonical } from "./scope.js";
import type { Follower } from "./subscription.js";

/** How to watch. */
export interface WatchOptions {
  /** Where to go on from: one cursor for all scopes (they share a feed), or one for each. */
  since?: Cursor | ReadonlyMap<string, Cursor> | Readonly<Record<string, Cursor>>;
  /** Changes of one thing within this time may be told as the last of them. */
  minGapMs?: number;
  /** Ends the watch. */
  signal?: AbortSignal;
  /** Notices that may wait for a slow consumer. */
  queueLengthMax?: number;
}

/** What a watch needs of its client. */
export interface WatchHost {
  join(follower: Follower): void;
  leave(follower: Follower): void;
  retry(scope: string): void;
  forget(watch: { close(): void }): void;
}

/** See the module. */
export class Watch implements AsyncIterable<Notice> {
  readonly #host: WatchHost;
  readonly #delivery: Delivery<Notice>;
  readonly #followers: WatchFollower[];
  readonly #cursors = new Map<string, Cursor>();
  readonly #states = new Map<string, StateNotice>();
  readonly #behind = new Set<WatchFollower>();
  readonly #opening = new Opening();
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.close();
  #isStarted = false;
  #isClosed = false;

  constructor(
    host: WatchHost,
    scopes: string | readonly string[],
    options: WatchOptions = {},
    listener?: (notice: Notice) => void,
  ) {
    this.#host = host;
    const list = [...new Set((typeof scopes === "string" ? [scopes] : scopes).map(canonical))];
    if (list.length === 0) throw new TidingsError("bad-request", "a watch needs a scope");
    const minGapMs = checked("minGapMs", options.minGapMs ?? 0);
    const take: Take = (follower, notices) => this.#take(follower, notices);
    this.#followers = list.map((scope) => {
      return new WatchFollower(scope, sinceOf(options, scope), minGapMs, take);
    });
    this.#delivery = new Delivery(
      listener,
      {
        onTaken: (notice) => this.#handleTaken(notice),
        onRoom: () => this.#catchUp(),
        onReturn: () => this.close(),
      },
      options.queueLengthMax,
    );
    options.signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#signal = options.signal;
    if (options.signal?.aborted) this.close();
    else if (listener !== undefined) this.#start();
  }

  /** The scopes, in the spelling they are asked with. */
  get scopes(): string[] {
    return this.#followers.map(({ scope }) => scope);
  }

  /** What the consumer has been handed, by scope. */
  get cursors(): ReadonlyMap<string, Cursor> {
    return this.#cursors;
  }

  /** Where a scope stands; the first one if none is named. */
  state(scope: string = this.#followers[0]!.scope): WatchState {
    if (this.#isClosed) return "closed";
    const known = this.#states.get(canonical(scope))?.state;
    return known ?? (this.#isStarted ? "connecting" : "pending");
  }

  /**
   * Starts, and resolves once every scope is live: whatever is written from then on is told.
   * Rejects if one is refused or the watch is closed. Giving the promise up changes nothing.
   */
  open(): Promise<void> {
    this.#start();
    if (this.#isClosed) return Promise.reject(new TidingsError("closed", "the watch was closed"));
    const states = this.scopes.map((scope) => this.#states.get(scope));
    const error = states.find((notice) => notice?.state === "refused")?.error;
    if (error !== undefined) return Promise.reject(error);
    const isLive = states.every((notice) => notice?.state === "live");
    return isLive ? Promise.resolve() : this.#opening.wait();
  }

  /** Asks again for the scopes that were refused. */
  retry(): void {
    for (const { scope } of this.#followers) this.#host.retry(scope);
  }

  /** Starts, and yields every notice. Leaving the loop closes the watch. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Notice> {
    this.#start();
    return this.#delivery.iterator();
  }

  /** Ends the watch and its iteration. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#delivery.close();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    for (const follower of this.#followers) this.#host.leave(follower);
    this.#host.forget(this);
    this.#opening.reject(new TidingsError("closed", "the watch was closed"));
  }

  #start(): void {
    if (this.#isStarted || this.#isClosed) return;
    this.#isStarted = true;
    for (const follower of this.#followers) this.#host.join(follower);
  }

  #take(follower: WatchFollower, notices: readonly Notice[]): boolean {
    for (const notice of notices) if (notice.kind === "state") this.#handleState(notice);
    if (this.#delivery.offer(notices)) return true;
    if (this.#isClosed) return false;
    follower.missed = missedIn(notices) ?? follower.missed;
    this.#behind.add(follower);
    this.#push({ kind: "state", scope: follower.scope, state: "behind" });
    return false;
  }

  #catchUp(): void {
    for (const follower of [...this.#behind]) {
      this.#behind.delete(follower);
      if (follower.missed !== undefined) {
        this.#delivery.push([follower.missed]);
        follower.cursor = follower.missed.cursor ?? follower.cursor;
        follower.missed = undefined;
      }
      this.#host.join(follower);
    }
  }

  #push(notice: StateNotice): void {
    this.#handleState(notice);
    this.#delivery.push([notice]);
  }

  #handleState(notice: StateNotice): void {
    this.#states.set(notice.scope, notice);
    if (notice.state === "refused" && notice.error) this.#opening.reject(notice.error);
    const isLive = (scope: string) => this.#states.get(scope)?.state === "live";
    if (notice.state === "live" && this.scopes.every(isLive)) this.#opening.resolve();
  }

  #handleTaken(notice: Notice): void {
    if (!("cursor" in notice) || notice.cursor === undefined) return;
    this.#cursors.set(notice.scope, notice.cursor);
  }
}

type Take = (follower: WatchFollower, notices: readonly Notice[]) => boolean;

class WatchFollower implements Follower {
  readonly scope: string;
  cursor: Cursor | undefined;
  readonly minGapMs: number;
  /** What a refused batch held that no cursor brings back, as a gap. */
  missed: GapNotice | undefined;
  readonly #take: Take;

  constructor(scope: string, cursor: Cursor | undefined, minGapMs: number, take: Take) {
    this.scope = scope;
    this.cursor = cursor;
    this.minGapMs = minGapMs;
    this.#take = take;
  }

  take(notices: readonly Notice[]): boolean {
    return this.#take(this, notices);
  }
}

/**
 * The gap that a consumer is owed which had no room for `notices`: the one among them, or one for
 * events that nobody keeps. Everything else is told again from the consumer's cursor.
 */
export function missedIn(
  notices: readonly (Notice | { kind: "caught-up" })[],
): GapNotice | undefined {
  const gap = notices.find((notice) => notice.kind === "gap");
  if (gap !== undefined) return gap;
  const lost = notices.find((notice) => notice.kind === "event" && notice.cursor === undefined);
  if (lost === undefined || !("scope" in lost)) return undefined;
  return { kind: "gap", scope: lost.scope, reason: "overflow" };
}

function sinceOf({ since }: WatchOptions, scope: string): Cursor | undefined {
  if (since === undefined) return undefined;
  const own = typeof since === "string" ? since : lookUp(since, scope);
  if (own === undefined) return undefined;
  const cursor = parseCursor(own);
  if (cursor !== undefined) return cursor;
  throw new TidingsError("bad-request", `not a cursor: ${JSON.stringify(own)}`);
}

function lookUp(since: Exclude<WatchOptions["since"], string | undefined>, scope: string): unknown {
  const entries = since instanceof Map ? since.entries() : Object.entries(since);
  for (const [key, cursor] of entries) if (canonical(key) === scope) return cursor;
  return undefined;
}

/**
 * A declared channel with its parameters: events, who is present, publishing, and catching up.
 *
 * A channel starts like a watch does: when iterated, by `open()`, or at once with a callback. On a
 * gap, if there is something to read (the `catchUp` given here, or the URL the server names), it is
 * `catching-up` until the read has succeeded: events that come meanwhile are held and follow the
 * result. Without anything to read the gap is told and the events go on.
 */

import { CatchUp, type Read } from "./catch-up.js";
import type { Clock } from "./clock.js";
import { parse as parseCursor, type Cursor } from "./cursor.js";
import { Delivery } from "./delivery.js";
import { TidingsError } from "./errors.js";
import { checked } from "./limits.js";
import type { GapNotice, Notice, WatchState } from "./notice.js";
import type { Random } from "./backoff.js";
import { Opening } from "./opening.js";
import { Roster } from "./roster.js";
import { ofChannel, type Params } from "./scope.js";
import type { Follower } from "./subscription.js";
import { missedIn, type WatchHost } from "./watch.js";

/** How to follow a channel. */
export interface ChannelOptions<T = unknown> {
  /** Where to go on from, on a channel with history. */
  since?: Cursor;
  /** Events within this time may be told as the last of them. */
  minGapMs?: number;
  /** Reads the application's state after a gap; takes the place of the URL the server names. */
  catchUp?: Read<T>;
  /** Ends following. */
  signal?: AbortSignal;
  /** Notices that may wait for a slow consumer. */
  queueLengthMax?: number;
}

/** The state read after a gap; the events that follow in the iteration come after it. */
export interface CaughtUpNotice<T = unknown> {
  readonly kind: "caught-up";
  readonly scope: string;
  readonly data: T;
  readonly gap: GapNotice;
}

/** Everything a channel tells. */
export type ChannelNotice<T = unknown> = Exclude<Notice, { kind: "change" }> | CaughtUpNotice<T>;

/** What a channel needs of its client. */
export interface ChannelHost extends WatchHost {
  readonly clock: Clock;
  readonly random: Random;
  publish(scope: string, event: string, data: unknown): Promise<{ cursor?: Cursor }>;
  /** Reads a catch-up URL as JSON. */
  readJson(url: string, signal: AbortSignal): Promise<unknown>;
}

/** See the module. */
export class Channel<T = unknown> implements AsyncIterable<ChannelNotice<T>> {
  readonly scope: string;
  readonly #host: ChannelHost;
  readonly #delivery: Delivery<ChannelNotice<T>>;
  readonly #follower: Follower;
  readonly #catchUp: CatchUp<T>;
  readonly #read: Read<T> | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.close();
  #roster = new Roster();
  #cursor: Cursor | undefined;
  /** The state of the subscription; `#state` is this and the catch-up together. */
  #link: WatchState = "pending";
  #state: WatchState = "pending";
  #error: TidingsError | undefined;
  #missed: GapNotice | undefined;
  readonly #opening = new Opening();

  constructor(
    host: ChannelHost,
    name: string,
    params: Params,
    options: ChannelOptions<T> = {},
    listener?: (notice: ChannelNotice<T>) => void,
  ) {
    this.#host = host;
    this.scope = ofChannel(name, params);
    this.#read = options.catchUp;
    this.#follower = {
      scope: this.scope,
      cursor: checkedSince(options.since),
      minGapMs: checked("minGapMs", options.minGapMs ?? 0),
      take: (notices) => this.#take(notices),
    };
    this.#catchUp = this.#makeCatchUp();
    this.#delivery = new Delivery(
      listener,
      {
        onTaken: (notice) => this.#handleTaken(notice),
        onRoom: () => this.#rejoin(),
        onReturn: () => this.close(),
      },
      options.queueLengthMax,
    );
    this.#signal = options.signal;
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (this.#signal?.aborted) this.close();
    else if (listener !== undefined) this.#start();
  }

  /** Who is present; kept while the connection is away. */
  get roster(): Roster {
    return this.#roster;
  }

  /** What the consumer has been handed. */
  get cursor(): Cursor | undefined {
    return this.#cursor;
  }

  get state(): WatchState {
    return this.#state;
  }

  /** Why the channel is `refused`. */
  get error(): TidingsError | undefined {
    return this.#error;
  }

  /** Starts, and resolves once the channel is live; rejects if it is refused or closed. */
  open(): Promise<void> {
    this.#start();
    if (this.#state === "live") return Promise.resolve();
    const error = this.#ending();
    if (error !== undefined) return Promise.reject(error);
    return this.#opening.wait();
  }

  /**
   * Sends an event to everyone in the channel, if its policy lets this caller. Resolves when the
   * server has taken it. Rejects with `connection-lost` where nobody can say whether it did: an
   * event is never sent twice by itself.
   */
  publish(event: string, data: unknown): Promise<{ cursor?: Cursor }> {
    return this.#host.publish(this.scope, event, data);
  }

  /** Asks again after a refusal. */
  retry(): void {
    this.#host.retry(this.scope);
  }

  /** Starts, and yields every notice. Leaving the loop closes the channel. */
  [Symbol.asyncIterator](): AsyncIterableIterator<ChannelNotice<T>> {
    this.#start();
    return this.#delivery.iterator();
  }

  /** Leaves the channel and ends its iteration. */
  close(): void {
    if (this.#state === "closed") return;
    this.#enter("closed");
    this.#delivery.close();
    this.#catchUp.close();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#host.leave(this.#follower);
    this.#host.forget(this);
  }

  #start(): void {
    if (this.#state !== "pending") return;
    this.#link = "connecting";
    this.#settleState();
    this.#host.join(this.#follower);
  }

  #take(notices: readonly Notice[]): boolean {
    const told = notices.flatMap((notice) => this.#translate(notice));
    const gap = notices.find((notice) => notice.kind === "gap");
    if (gap === undefined && this.#catchUp.isRunning) {
      this.#catchUp.hold(notices.filter(isHeld));
      return this.#offer(told.filter((notice) => !isHeld(notice)));
    }
    if (!this.#offer(told)) return false;
    if (gap !== undefined) this.#beginCatchUp(gap);
    return true;
  }

  /** What the consumer is told of a notice; a channel has no changes of documents. */
  #translate(notice: Notice): ChannelNotice<T>[] {
    if (notice.kind === "change") return [];
    if (notice.kind === "presence") this.#roster = notice.roster;
    if (notice.kind !== "state") return [notice];
    this.#error = notice.error;
    this.#link = notice.state;
    return [{ ...notice, state: this.#settleState() }];
  }

  /** While a read runs the channel is not called live, whatever the connection is. */
  #settleState(): WatchState {
    this.#enter(this.#link === "live" && this.#catchUp.isRunning ? "catching-up" : this.#link);
    return this.#state;
  }

  #offer(notices: ChannelNotice<T>[]): boolean {
    if (notices.length === 0 || this.#delivery.offer(notices)) return true;
    if (this.#state === "closed") return false;
    this.#missed = missedIn(notices) ?? this.#missed;
    this.#link = "behind";
    this.#tellState();
    return false;
  }

  #rejoin(): void {
    const missed = this.#missed;
    this.#missed = undefined;
    if (missed !== undefined) {
      this.#follower.cursor = missed.cursor ?? this.#follower.cursor;
      this.#delivery.push([missed]);
      this.#beginCatchUp(missed);
    }
    this.#host.join(this.#follower);
  }

  #beginCatchUp(gap: GapNotice): void {
    if (this.#read === undefined && gap.catchUp === undefined) return;
    this.#catchUp.begin(gap);
    this.#tellState();
  }

  #makeCatchUp(): CatchUp<T> {
    return new CatchUp<T>({
      read: (gap, signal) =>
        this.#read?.(gap, signal) ?? (this.#host.readJson(gap.catchUp ?? "", signal) as Promise<T>),
      clock: this.#host.clock,
      random: this.#host.random,
      onDone: (data, gap, held) => {
        const done: CaughtUpNotice<T> = { kind: "caught-up", scope: this.scope, data, gap };
        this.#delivery.push([done, ...held.filter((notice) => notice.kind !== "change")]);
        this.#tellState();
      },
      onFailed: (cause) => {
        const error = new TidingsError("catch-up-failed", "the state could not be read again", {
          retry: true,
          scope: this.scope,
          cause,
        });
        this.#delivery.push([{ kind: "state", scope: this.scope, state: this.#state, error }]);
      },
    });
  }

  /** Tells the state if it has changed. */
  #tellState(): void {
    const before = this.#state;
    const state = this.#settleState();
    if (state !== before) this.#delivery.push([{ kind: "state", scope: this.scope, state }]);
  }

  #enter(state: WatchState): void {
    this.#state = state;
    const error = this.#ending();
    if (error !== undefined) this.#opening.reject(error);
    else if (state === "live") this.#opening.resolve();
  }

  /** Why it can't become live by itself any more. */
  #ending(): TidingsError | undefined {
    if (this.#state === "closed") return new TidingsError("closed", "the channel was closed");
    return this.#state === "refused" ? this.#error : undefined;
  }

  #handleTaken(notice: ChannelNotice<T>): void {
    if ("cursor" in notice && notice.cursor !== undefined) this.#cursor = notice.cursor;
  }
}

/** Held while a read runs: what must come after its result. */
function isHeld({ kind }: { kind: string }): boolean {
  return kind === "event" || kind === "position";
}

function checkedSince(since: Cursor | undefined): Cursor | undefined {
  if (since === undefined) return undefined;
  const cursor = parseCursor(since);
  if (cursor !== undefined) return cursor;
  throw new TidingsError("bad-request", `not a cursor: ${JSON.stringify(since)}`);
}

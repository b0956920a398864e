/**
 * One scope as the server is asked for it, shared by all who follow it here.
 *
 * Promises to each follower: every change after its own position once it is live, in order, each
 * once; or a gap. A frame is handed over whole or, if the follower has no room, not at all, and
 * then its position has not moved. What a follower has seen is known by its position, so frames
 * that come twice and replays asked for by another follower are skipped. The one exception: who
 * joins with a position that has not reached this client yet may get the changes up to it again.
 *
 * A position that belongs to another epoch than the feed's is told as a gap here, because the
 * server was asked with somebody else's.
 */

import { delayAfter, directedDelay, type Random } from "./backoff.js";
import { compare, epochOf, isCovered, type Cursor } from "./cursor.js";
import { TidingsError } from "./errors.js";
import type {
  Change,
  ChannelEvent,
  ClientFrame,
  ErrorFrame,
  GapFrame,
  Member,
  PresenceKind,
  ServerFrame,
} from "./frames.js";
import type { Notice, StateNotice, WatchState } from "./notice.js";
import { Roster } from "./roster.js";

/** One consumer of one scope. */
export interface Follower {
  readonly scope: string;
  /** What it has been handed last; moved by the subscription. */
  cursor: Cursor | undefined;
  /** The least time between two deliveries it asks for; 0 for every change. */
  readonly minGapMs: number;
  /** Takes all of `notices`, or none and returns false: it is then no follower any more. */
  take(notices: readonly Notice[]): boolean;
}

/** Where the subscription stands with the server. */
type Phase = "waiting" | "asked" | "live" | "refused";

/** See the module. */
export class Subscription {
  readonly scope: string;
  /** The scope as the server spells it in its frames. */
  answeredAs: string;
  /** The newest position the server has told of. */
  cursor: Cursor | undefined;
  /** When it may be asked for (again). */
  askAt = 0;
  /** When it is let go; set while nobody follows. */
  lingerUntil: number | undefined;
  #phase: Phase = "waiting";
  #id: string | undefined;
  #askedSince: Cursor | undefined;
  #askedGapMs = 0;
  /** True while asked for again for the sake of one follower: others need no gap they are past. */
  #isReasking = false;
  /** The server has said that it could not resume and its gap is on the way. */
  #isGapDue = false;
  #failures = 0;
  #error: TidingsError | undefined;
  #roster: Roster | undefined;
  readonly #followers = new Set<Follower>();

  constructor(scope: string) {
    this.scope = scope;
    this.answeredAs = scope;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** The id of the subscribe that is running or answered. */
  get id(): string | undefined {
    return this.#id;
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0;
  }

  /** The roster, if the channel has presence and it was told. */
  get roster(): Roster | undefined {
    return this.#roster;
  }

  /** Adds a follower and tells it how things stand. */
  add(follower: Follower): void {
    this.lingerUntil = undefined;
    this.#followers.add(follower);
    this.#tell(follower, [this.#state()]);
    if (this.#phase !== "live") return;
    // A position beyond the feed's is vouched for by nobody: rather some changes twice than none.
    if (follower.cursor && this.cursor && compare(follower.cursor, this.cursor) === "after") {
      follower.cursor = this.cursor;
    }
    this.#settle(follower);
    if (this.#roster !== undefined) {
      const members = [...this.#roster.members.values()];
      this.#tell(follower, [this.#presence(this.#roster, "sync", members)]);
    }
  }

  remove(follower: Follower): void {
    this.#followers.delete(follower);
  }

  /** True if a follower needs what the server was not asked for: older changes, or all of them. */
  get needsReask(): boolean {
    if (this.#phase !== "live" || this.#isGapDue) return false;
    for (const { cursor, minGapMs } of this.#followers) {
      if (minGapMs < this.#askedGapMs) return true;
      if (cursor && this.cursor && compare(cursor, this.cursor) === "before") return true;
    }
    return false;
  }

  /** The frame that asks for it. */
  ask(id: string): ClientFrame {
    this.#isReasking = this.#phase === "live";
    this.#phase = "asked";
    this.#id = id;
    this.#isGapDue = false;
    this.#askedSince = this.#oldest();
    this.#askedGapMs = this.#smallestGapMs();
    return {
      t: "subscribe",
      id,
      scope: this.scope,
      ...(this.#askedSince !== undefined && { since: this.#askedSince }),
      ...(this.#askedGapMs > 0 && { min_gap_ms: this.#askedGapMs }),
    };
  }

  /** The connection is gone. */
  handleLost(): void {
    if (this.#phase === "refused") return;
    const wasLive = this.#phase === "live";
    this.#phase = "waiting";
    this.#id = undefined;
    this.askAt = 0;
    this.#isReasking = false;
    if (wasLive) this.#tellAll(() => [this.#state("stale")]);
  }

  /** Asks again after a refusal: something has changed that may change the answer. */
  retry(): void {
    if (this.#phase !== "refused") return;
    this.#phase = "waiting";
    this.#error = undefined;
    this.askAt = 0;
    this.#tellAll(() => [this.#state()]);
  }

  handleAck(frame: Extract<ServerFrame, { t: "ack" }>): void {
    const wasReasked = this.#isReasking;
    this.#phase = "live";
    this.#failures = 0;
    this.answeredAs = frame.scope ?? this.scope;
    const wasResumed = this.#askedSince !== undefined && frame.resumed;
    // The head must not be taken for our position while a replay is still to come.
    this.cursor = wasResumed ? this.#askedSince : (frame.cursor ?? this.cursor);
    this.#isGapDue = this.#askedSince !== undefined && !frame.resumed;
    if (!wasReasked) this.#tellAll(() => [this.#state()]);
    if (!this.#isGapDue) for (const follower of this.#followers) this.#settle(follower);
  }

  handleChanges(frame: { cursor?: Cursor; changes: readonly Change[] }): void {
    const { scope } = this;
    const last = frame.cursor ?? frame.changes.at(-1)?.cursor;
    this.#deliver(frame.changes, last, (change) => ({ kind: "change", scope, ...change }));
  }

  handleEvents(frame: { cursor?: Cursor; events: readonly ChannelEvent[] }): void {
    const { scope } = this;
    const last = frame.cursor ?? frame.events.at(-1)?.cursor;
    this.#deliver(frame.events, last, (event) => ({ kind: "event", scope, ...event }));
  }

  handlePresence(frame: Extract<ServerFrame, { t: "presence" }>): void {
    const roster = this.#roster ?? new Roster();
    const members = roster.apply(frame);
    if (members === undefined) return;
    this.#roster = roster;
    if (members.length === 0 && frame.kind !== "sync") return;
    this.#tellAll(() => [this.#presence(roster, frame.kind, members)]);
  }

  handleGap(gap: GapFrame): void {
    const cursor = gap.cursor ?? this.cursor;
    const notice = { ...withoutKind(gap), kind: "gap", scope: this.scope } as const;
    const isForAll = !this.#isReasking;
    this.#isReasking = false;
    this.#isGapDue = false;
    this.cursor = cursor;
    for (const follower of this.#followers) {
      const isPast = follower.cursor && cursor && isCovered(cursor, follower.cursor);
      if (isPast && !isForAll) continue;
      if (this.#tell(follower, [notice])) follower.cursor = cursor;
    }
  }

  /** The server stands at `cursor` with everything before it sent. */
  handlePosition(cursor: Cursor): void {
    if (this.cursor !== undefined && isCovered(cursor, this.cursor)) return;
    this.#noticeEpoch(cursor);
    this.cursor = cursor;
    for (const follower of this.#followers) {
      if (follower.cursor !== undefined && isCovered(cursor, follower.cursor)) continue;
      const notice = { kind: "position", scope: this.scope, cursor } as const;
      if (this.#tell(follower, [notice])) follower.cursor = cursor;
    }
  }

  /** The server refuses, ends, or complains about this subscription. */
  handleError(frame: ErrorFrame, now: number, random: Random): void {
    const error = errorOf(frame, this.scope);
    const isOver = frame.ended || (frame.id !== undefined && frame.id === this.#id);
    if (!isOver) return this.#tellAll(() => [this.#state(undefined, error)]);
    this.#id = undefined;
    if (frame.retry) {
      this.#phase = "waiting";
      const ownMs = delayAfter(this.#failures++, random);
      const givenMs = frame.retryAfterMs;
      this.askAt = now + (givenMs === undefined ? ownMs : directedDelay(givenMs, random));
      this.#tellAll(() => [this.#state(undefined, error)]);
    } else {
      this.refuse(error);
    }
  }

  /** It is over until `retry`. */
  refuse(error: TidingsError): void {
    this.#phase = "refused";
    this.#error = error;
    this.#tellAll(() => [this.#state()]);
  }

  #deliver<T extends { cursor?: Cursor }>(
    items: readonly T[],
    last: Cursor | undefined,
    notice: (item: T) => Notice,
  ): void {
    if (last !== undefined) this.#noticeEpoch(last);
    this.#isReasking = false;
    for (const follower of this.#followers) {
      const seen = follower.cursor;
      const fresh = items.filter(({ cursor }) => !seen || !cursor || !isCovered(cursor, seen));
      if (fresh.length > 0 && !this.#tell(follower, fresh.map(notice))) continue;
      if (last && !(seen && isCovered(last, seen))) follower.cursor = last;
    }
    if (last && !(this.cursor && isCovered(last, this.cursor))) this.cursor = last;
  }

  /** A sequence that began anew without a word: who followed the old one has missed something. */
  #noticeEpoch(cursor: Cursor): void {
    if (this.cursor === undefined || epochOf(this.cursor) === epochOf(cursor)) return;
    this.handleGap({ t: "gap", scope: this.scope, reason: "epoch" });
    this.cursor = undefined;
    for (const follower of this.#followers) follower.cursor = undefined;
  }

  /** Brings a follower's own position in line with a live subscription. */
  #settle(follower: Follower): void {
    const { cursor } = this;
    if (cursor === undefined) return;
    const isNew = follower.cursor === undefined;
    if (follower.cursor !== undefined && compare(follower.cursor, cursor) !== "unrelated") return;
    const notice: Notice = isNew
      ? { kind: "position", scope: this.scope, cursor }
      : { kind: "gap", scope: this.scope, reason: "epoch", cursor };
    if (this.#tell(follower, [notice])) follower.cursor = cursor;
  }

  #oldest(): Cursor | undefined {
    let oldest: Cursor | undefined;
    for (const { cursor } of this.#followers) {
      if (cursor === undefined) continue;
      if (oldest === undefined || compare(cursor, oldest) === "before") oldest = cursor;
    }
    return oldest ?? this.cursor;
  }

  #smallestGapMs(): number {
    return Math.min(...[...this.#followers].map((follower) => follower.minGapMs));
  }

  #tellAll(notices: () => Notice[]): void {
    for (const follower of this.#followers) this.#tell(follower, notices());
  }

  #tell(follower: Follower, notices: readonly Notice[]): boolean {
    const isTaken = follower.take(notices);
    if (!isTaken) this.#followers.delete(follower);
    return isTaken && this.#followers.has(follower);
  }

  #state(state: WatchState = STATES[this.#phase], error = this.#error): StateNotice {
    return { kind: "state", scope: this.scope, state, ...(error !== undefined && { error }) };
  }

  #presence(roster: Roster, change: PresenceKind, members: readonly Member[]): Notice {
    return { kind: "presence", scope: this.scope, change, members, roster };
  }
}

const STATES = {
  waiting: "connecting",
  asked: "connecting",
  live: "live",
  refused: "refused",
} as const satisfies Record<Phase, WatchState>;

function withoutKind({ t: _, ...rest }: GapFrame): Omit<GapFrame, "t"> {
  return rest;
}

/** What a server's error frame is to a caller. */
export function errorOf(frame: ErrorFrame, scope?: string): TidingsError {
  return new TidingsError(frame.code, frame.message, {
    fix: frame.fix,
    detail: frame.detail,
    retry: frame.retry,
    scope: scope ?? frame.scope,
  });
}

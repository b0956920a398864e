/** What a watch tells its consumer. */

import type { Cursor } from "./cursor.js";
import type { TidingsError } from "./errors.js";
import type { Change, ChannelEvent, GapReason, Member, PresenceKind } from "./frames.js";
import type { Roster } from "./roster.js";

/** Where a scope of a watch stands. */
export type WatchState =
  | "pending" // nothing was asked for yet
  | "connecting" // asked for, not answered
  | "live" // every later change comes
  | "stale" // the connection is gone; what was shown is no longer current
  | "behind" // the consumer is too slow; delivery goes on from its cursor once it has caught up
  | "catching-up" // a channel reads again what a gap covers
  | "refused" // see the error; asked for again after a change of token or by `retry()`
  | "closed";

/** One committed write of a scope. */
export interface ChangeNotice extends Change {
  readonly kind: "change";
  readonly scope: string;
}

/** One event of a channel. */
export interface EventNotice extends ChannelEvent {
  readonly kind: "event";
  readonly scope: string;
}

/** Something was missed: read again what is built from this scope, then go on. */
export interface GapNotice {
  readonly kind: "gap";
  readonly scope: string;
  readonly reason: GapReason;
  /** The position that delivery goes on from. */
  readonly cursor?: Cursor;
  /** How long the server asks to wait before reading again, so that not all read at once. */
  readonly delayMs?: number;
  /** Where the application's state can be read, if the channel says so. */
  readonly catchUp?: string;
}

/** The scope stands at `cursor` without anything having happened there. */
export interface PositionNotice {
  readonly kind: "position";
  readonly scope: string;
  readonly cursor: Cursor;
}

/** The roster of a channel has changed; `roster` is the live one, with the change in it. */
export interface PresenceNotice {
  readonly kind: "presence";
  readonly scope: string;
  readonly change: PresenceKind;
  readonly members: readonly Member[];
  readonly roster: Roster;
}

/** The scope's state has changed, or an error was told that does not change it. */
export interface StateNotice {
  readonly kind: "state";
  readonly scope: string;
  readonly state: WatchState;
  readonly error?: TidingsError;
}

/** Everything a watch tells. */
export type Notice =
  ChangeNotice | EventNotice | GapNotice | PositionNotice | PresenceNotice | StateNotice;

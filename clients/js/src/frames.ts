/**
 * The frames of the sync protocol, version 1, and the reading of those a server sends.
 *
 * Reading copies what is known and drops the rest: a field of a later server passes unseen, a kind
 * of a later server is skipped, and a frame that lacks what its kind needs is refused whole. Where
 * changes are lost by that, the frame is read as the gap it makes.
 */

import { parse as parseCursor, type Cursor } from "./cursor.js";

/** The version of the protocol this client speaks. */
export const PROTOCOL_VERSION = 1;

/** What a client sends. */
export type ClientFrame =
  | { t: "hello"; v: number; build?: string; token?: string }
  | { t: "subscribe"; id: string; scope: string; since?: Cursor; min_gap_ms?: number }
  | { t: "unsubscribe"; id: string; scope: string }
  | { t: "publish"; id: string; channel: string; event: string; data: unknown }
  | { t: "beat" }
  | { t: "token"; token: string };

/** Why something was missed: a closed list, kept open here for servers that come later. */
export type GapReason =
  | "ahead"
  | "bus"
  | "epoch"
  | "hole"
  | "lapped"
  | "malformed"
  | "overflow"
  | "restart"
  | "revoked"
  | "schema"
  | "too-old"
  | (string & {});

/** One committed write. */
export interface Change {
  readonly cursor: Cursor;
  /** `publish`, `append`, `archive` and what later sources add. */
  readonly op: string;
  readonly name: string;
  readonly version: number;
  readonly hash?: string;
  /** Who wrote, as the write's own metadata says; a hint, never an authority. */
  readonly agent?: string;
  readonly at?: string | number;
  readonly data?: unknown;
}

/** One event of a channel. */
export interface ChannelEvent {
  readonly event: string;
  readonly data: unknown;
  /** Absent on a channel that keeps no history. */
  readonly cursor?: Cursor;
  readonly at?: string | number;
}

/** Somebody present in a channel: one connection, not one user. */
export interface Member {
  readonly id: string;
  readonly actor?: string;
  readonly meta?: unknown;
  /** Orders the updates of one member; a later one wins. */
  readonly at: number;
}

/** What a presence frame does to the roster. */
export type PresenceKind = "sync" | "join" | "leave" | "update";

/** What a server refuses with. */
export interface ErrorFrame {
  t: "error";
  id?: string;
  scope?: string;
  code: string;
  message: string;
  fix?: string;
  /** More of this one request. */
  detail?: string;
  retry: boolean;
  /** When to try again. */
  retryAfterMs?: number;
  ended: boolean;
}

/** Tells that something was missed and where to go on from. */
export interface GapFrame {
  t: "gap";
  scope: string;
  reason: GapReason;
  cursor?: Cursor;
  delayMs?: number;
  catchUp?: string;
}

/** What a server sends, as far as this client knows it. */
export type ServerFrame =
  | { t: "hello"; v: number; session?: string; heartbeatMs?: number; build?: string }
  | { t: "ack"; id: string; scope?: string; cursor?: Cursor; resumed: boolean; ended: boolean }
  | { t: "changes"; scope: string; cursor?: Cursor; changes: Change[] }
  | { t: "events"; scope: string; cursor?: Cursor; events: ChannelEvent[] }
  | { t: "presence"; scope: string; kind: PresenceKind; members: Member[]; total?: number }
  | GapFrame
  | { t: "beat"; cursors: Map<string, Cursor> }
  | { t: "reconnect"; delayMs?: number; cursors: Map<string, Cursor> }
  | { t: "update-available"; build: string }
  | ErrorFrame;

type Fields = Readonly<Record<string, unknown>>;

/** Reads one frame; undefined if it is no JSON, of an unknown kind, or lacks what it needs. */
export function decode(text: string): ServerFrame | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isFields(value)) return undefined;
  const kind = value["t"];
  if (typeof kind !== "string" || !Object.hasOwn(READERS, kind)) return undefined;
  return READERS[kind]?.(value);
}

const READERS: Record<string, (fields: Fields) => ServerFrame | undefined> = {
  hello(fields) {
    const v = number(fields["v"]);
    if (v === undefined) return undefined;
    const heartbeatMs = number(fields["heartbeat_ms"]);
    return {
      t: "hello",
      v,
      ...known({
        session: string(fields["session"]),
        heartbeatMs: heartbeatMs !== undefined && heartbeatMs > 0 ? heartbeatMs : undefined,
        build: string(fields["build"]),
      }),
    };
  },
  ack(fields) {
    const id = string(fields["id"]);
    if (id === undefined) return undefined;
    const [resumed, ended] = [fields["resumed"] === true, fields["ended"] === true];
    const rest = known({ scope: string(fields["scope"]), cursor: parseCursor(fields["cursor"]) });
    return { t: "ack", id, resumed, ended, ...rest };
  },
  changes(fields) {
    const scope = string(fields["scope"]);
    const changes = list(fields["changes"], readChange);
    if (scope === undefined) return undefined;
    const position = known({ cursor: parseCursor(fields["cursor"]) });
    if (changes === undefined) return { t: "gap", scope, reason: "malformed", ...position };
    return { t: "changes", scope, changes, ...position };
  },
  events(fields) {
    const scope = string(fields["scope"]);
    const events = list(fields["events"], readEvent);
    if (scope === undefined) return undefined;
    const position = known({ cursor: parseCursor(fields["cursor"]) });
    if (events === undefined) return { t: "gap", scope, reason: "malformed", ...position };
    return { t: "events", scope, events, ...position };
  },
  presence(fields) {
    const scope = string(fields["scope"]);
    const kind = fields["kind"];
    const members = list(fields["members"], readMember);
    if (scope === undefined || members === undefined || !isPresenceKind(kind)) return undefined;
    return { t: "presence", scope, kind, members, ...known({ total: number(fields["total"]) }) };
  },
  gap(fields) {
    const scope = string(fields["scope"]);
    if (scope === undefined) return undefined;
    return {
      t: "gap",
      scope,
      reason: string(fields["reason"]) ?? "hole",
      ...known({
        cursor: parseCursor(fields["cursor"]),
        delayMs: number(fields["delay_ms"]),
        catchUp: string(fields["catch_up"]),
      }),
    };
  },
  beat: (fields) => ({ t: "beat", cursors: readCursors(fields["cursors"]) }),
  reconnect(fields) {
    const cursors = readCursors(fields["cursors"]);
    return { t: "reconnect", cursors, ...known({ delayMs: number(fields["delay_ms"]) }) };
  },
  "update-available"(fields) {
    const build = string(fields["build"]);
    return build === undefined ? undefined : { t: "update-available", build };
  },
  error: (fields) => readError(fields),
};

/** Reads an error, of a frame or of an HTTP answer. */
export function readError(fields: Fields): ErrorFrame {
  return {
    t: "error",
    code: string(fields["code"]) ?? "server-error",
    message: string(fields["message"]) ?? "the server gave no reason",
    retry: fields["retry"] === true,
    ended: fields["ended"] === true,
    ...known({
      id: string(fields["id"]),
      scope: string(fields["scope"]),
      fix: string(fields["fix"]),
      detail: string(fields["detail"]),
      retryAfterMs: number(fields["retry_after_ms"]),
    }),
  };
}

/** Reads one change; undefined if it lacks its position, operation or name. */
export function readChange(value: unknown): Change | undefined {
  if (!isFields(value)) return undefined;
  const cursor = parseCursor(value["cursor"]);
  const op = string(value["op"]);
  const name = string(value["name"]);
  if (cursor === undefined || op === undefined || name === undefined) return undefined;
  return {
    cursor,
    op,
    name,
    version: number(value["version"]) ?? 0,
    ...known({
      hash: string(value["hash"]),
      agent: string(value["agent"]),
      at: time(value["at"]),
      data: value["data"],
    }),
  };
}

/** Reads one event of a channel; undefined if it has no name. */
export function readEvent(value: unknown): ChannelEvent | undefined {
  if (!isFields(value)) return undefined;
  const event = string(value["event"]);
  if (event === undefined) return undefined;
  return {
    event,
    data: value["data"],
    ...known({
      cursor: parseCursor(value["cursor"]),
      at: time(value["at"]),
    }),
  };
}

function readMember(value: unknown): Member | undefined {
  if (!isFields(value)) return undefined;
  const id = string(value["id"]);
  const at = number(value["at"]);
  if (id === undefined || id === "" || at === undefined) return undefined;
  return { id, at, ...known({ actor: string(value["actor"]), meta: value["meta"] }) };
}

function readCursors(value: unknown): Map<string, Cursor> {
  const cursors = new Map<string, Cursor>();
  if (!isFields(value)) return cursors;
  for (const [scope, text] of Object.entries(value)) {
    const cursor = parseCursor(text);
    if (cursor !== undefined) cursors.set(scope, cursor);
  }
  return cursors;
}

function isPresenceKind(value: unknown): value is PresenceKind {
  return value === "sync" || value === "join" || value === "leave" || value === "update";
}

/** A list read whole or not at all. */
function list<T>(value: unknown, read: (item: unknown) => T | undefined): T[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const items: T[] = [];
  for (const item of value) {
    const one = read(item);
    if (one === undefined) return undefined;
    items.push(one);
  }
  return items;
}

/** True for a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function string(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function time(value: unknown): string | number | undefined {
  return string(value) ?? number(value);
}

/** The fields that have a value. */
type Known<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function known<T extends object>(fields: T): Known<T> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Known<T>;
}

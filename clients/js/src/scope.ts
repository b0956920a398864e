/** Scopes as text: the one spelling this client asks with, and which scopes share a feed. */

import { TidingsError } from "./errors.js";

/** Parameters of a channel; numbers and booleans are sent as their text. */
export type Params = Readonly<Record<string, string | number | boolean>>;

/** A scope longer than this is refused here, since the server would end the connection for it. */
export const SCOPE_LENGTH_MAX = 4_096;

/** Parameters of one channel; the server refuses more. */
export const PARAMS_MAX = 16;

const KINDS = ["doc", "events", "query", "channel", "hold"];

/** Returns the full spelling of `text`; a bare path is a document or a prefix. */
export function canonical(text: string): string {
  const scope = text.startsWith("/") ? `doc:${text}` : text;
  const kind = scope.slice(0, Math.max(scope.indexOf(":"), 0));
  if (!KINDS.includes(kind)) {
    throw new TidingsError("bad-request", `not a scope: ${JSON.stringify(text.slice(0, 80))}`, {
      fix: `begin it with one of ${KINDS.map((name) => `${name}:`).join(", ")}`,
    });
  }
  if (scope.length > SCOPE_LENGTH_MAX) {
    throw new TidingsError("bad-request", `scope longer than ${SCOPE_LENGTH_MAX} characters`);
  }
  return kind === "channel" ? sortedParams(scope) : scope;
}

/** The scope of a declared channel with its parameters, in the order of their names. */
export function ofChannel(name: string, params: Params = {}): string {
  const entries = Object.entries(params);
  if (name === "" || /[?#/:\s]/.test(name)) {
    throw new TidingsError("bad-request", `not a channel's name: ${JSON.stringify(name)}`);
  }
  if (entries.length > PARAMS_MAX) {
    throw new TidingsError("bad-request", `more than ${PARAMS_MAX} parameters`);
  }
  const query = entries.map(([key, value]) => `${encode(key)}=${encode(String(value))}`).join("&");
  return canonical(query === "" ? `channel:${name}` : `channel:${name}?${query}`);
}

/** The channel's name with its query, as an HTTP path under `/v1/channels/` takes it. */
export function channelPart(scope: string): string {
  return scope.slice("channel:".length);
}

/**
 * Names the feed a scope belongs to. One SSE stream has one id, so it carries scopes of one feed.
 * Channels and events are given a stream per scope: a client can't see which of them share one.
 */
export function feedOf(scope: string): string {
  const kind = scope.slice(0, scope.indexOf(":"));
  if (kind === "channel" || kind === "events") return scope;
  if (kind !== "doc" || !scope.startsWith("doc://")) return kind;
  return scope.slice(0, scope.indexOf("/", "doc://".length) + 1) || scope;
}

function sortedParams(scope: string): string {
  const at = scope.indexOf("?");
  if (at < 0) return scope;
  const pairs = scope
    .slice(at + 1)
    .split("&")
    .filter((pair) => pair !== "");
  pairs.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : 0));
  return pairs.length === 0 ? scope.slice(0, at) : `${scope.slice(0, at)}?${pairs.join("&")}`;
}

function nameOf(pair: string): string {
  return pair.split("=", 1)[0] ?? pair;
}

function encode(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch (cause) {
    throw new TidingsError("bad-request", "a parameter holds half a surrogate pair", { cause });
  }
}

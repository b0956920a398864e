/** The caller's token: where it comes from, and how long it is good. */

import { isFields } from "./frames.js";

/** A token, or a way to get one; undefined is a caller without a token. */
export type TokenSource = string | (() => string | undefined | Promise<string | undefined>);

/** A token is renewed when this share of its life is left, but never later than the margin. */
const RENEW_SHARE = 0.1;

/** Time for the renewal itself. */
const RENEW_MARGIN_MS = 10_000;

/** Lives are not believed to be shorter, so that a token is never asked for in a tight loop. */
const RENEW_AFTER_MIN_MS = 1_000;

/** The longest delay a timer takes. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Gets a token from its source; undefined if there is none. */
export async function obtain(source: TokenSource | undefined): Promise<string | undefined> {
  return typeof source === "function" ? await source() : source;
}

/**
 * When to renew a token that was just made, in milliseconds from then; undefined if it doesn't say.
 *
 * The difference of its two times is used, never the device's clock, which may be wrong by hours.
 */
export function renewAfterMs(token: string): number | undefined {
  const claims = claimsOf(token);
  const lifeMs = (Number(claims?.["exp"]) - Number(claims?.["iat"])) * 1_000;
  if (!Number.isFinite(lifeMs) || lifeMs <= 0) return undefined;
  const after = lifeMs - Math.max(lifeMs * RENEW_SHARE, Math.min(RENEW_MARGIN_MS, lifeMs / 2));
  return Math.min(Math.max(after, RENEW_AFTER_MIN_MS), TIMER_MAX_MS);
}

function claimsOf(token: string): Readonly<Record<string, unknown>> | undefined {
  const part = token.split(".")[1];
  if (part === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(atob(part.replaceAll("-", "+").replaceAll("_", "/")));
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** How long to wait before trying again. */

import { DELAY_MAX_MS } from "./limits.js";

/** The first wait. */
const BASE_MS = 500;

/** The longest wait: a page that comes back from an outage is live within seconds. */
const CAP_MS = 4_000;

/** Added to a delay the server chose, at most, so that clients given the same one come apart. */
const DIRECTED_SPREAD = 0.1;

/** A source of numbers in [0, 1). */
export type Random = () => number;

/** The wait after `failures` failures in a row: doubling, half of it fixed and half by chance. */
export function delayAfter(failures: number, random: Random): number {
  const ceiling = Math.min(CAP_MS, BASE_MS * 2 ** Math.min(failures, 16));
  return ceiling / 2 + (ceiling / 2) * random();
}

/** The wait for a delay the server gave: never shorter than given, a little spread on top. */
export function directedDelay(delayMs: number, random: Random): number {
  return Math.min(delayMs, DELAY_MAX_MS) * (1 + DIRECTED_SPREAD * random());
}

/** Numbers that come from an application or a server, checked before they are used. */

import { TidingsError } from "./errors.js";

/** A delay from a server is not believed beyond this; longer ones would also overflow a timer. */
export const DELAY_MAX_MS = 10 * 60_000;

/** Returns an option that counts something, or refuses it by its name. */
export function checked(name: string, value: number, least = 0): number {
  if (Number.isFinite(value) && value >= least) return Math.round(value);
  throw new TidingsError("bad-request", `${name} must be a number, ${least} or more`);
}

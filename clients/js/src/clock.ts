/** Time as the client sees it, replaceable in tests. */

/** Two clocks and a timer. */
export interface Clock {
  /** Milliseconds that only move forward; they may stand still while the machine sleeps. */
  now(): number;
  /** The wall clock in milliseconds; used only to notice that the machine slept. */
  wall(): number;
  /** Calls `run` once after `delayMs`; the returned function takes it back. */
  schedule(delayMs: number, run: () => void): () => void;
}

/** The clocks of the machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  schedule(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** A clock that a test moves, and a wait for what promises have to do. */

export class FakeClock {
  #now = 0;
  #wallAhead = 1_000_000;
  #timers = new Map();
  #count = 0;

  now = () => this.#now;
  wall = () => this.#now + this.#wallAhead;

  schedule = (delayMs, run) => {
    const id = ++this.#count;
    this.#timers.set(id, { at: this.#now + delayMs, run });
    return () => this.#timers.delete(id);
  };

  get pending() {
    return this.#timers.size;
  }

  /** Moves time on, running timers in order and letting promises settle after each. */
  async advance(ms) {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      const next = [...this.#timers].sort(([, a], [, b]) => a.at - b.at)[0];
      if (next === undefined || next[1].at > end) break;
      this.#timers.delete(next[0]);
      this.#now = Math.max(this.#now, next[1].at);
      next[1].run();
      await settle();
    }
    this.#now = end;
  }

  /** The machine sleeps: no timer runs. The monotonic clock runs on or stands still. */
  sleep(ms, { standsStill }) {
    if (standsStill) this.#wallAhead += ms;
    else this.#now += ms;
  }

  /** Somebody sets the wall clock. */
  shiftWall(ms) {
    this.#wallAhead += ms;
  }
}

/** Lets every promise that can settle do so. */
export async function settle() {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until `condition` holds; the bound only ends a test that has failed. */
export async function until(condition, what = condition.toString()) {
  // Only a hang reaches it: other tests share the machine.
  const end = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

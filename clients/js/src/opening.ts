/** Those who wait for a watch or channel to be live. */

import type { TidingsError } from "./errors.js";

interface Waiter {
  resolve(): void;
  reject(error: TidingsError): void;
}

/** Promises that are kept together. */
export class Opening {
  #waiters: Waiter[] = [];

  /** Resolves at the next `resolve`, rejects at the next `reject`. */
  wait(): Promise<void> {
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  resolve(): void {
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
  }

  reject(error: TidingsError): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }
}

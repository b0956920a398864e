/**
 * The client: one connection for all watches and channels of a page.
 *
 * Making one costs nothing: no timer, socket or listener exists before something is watched or
 * published, so it may be made while a page is rendered on a server. When nothing is watched any
 * more the connection is closed.
 */

import { Channel, type ChannelHost, type ChannelNotice, type ChannelOptions } from "./channel.js";
import type { Phase } from "./connection.js";
import { TidingsError } from "./errors.js";
import { Link, type LinkOptions } from "./link.js";
import type { Notice } from "./notice.js";
import type { Params } from "./scope.js";
import type { TokenSource } from "./token.js";
import { Watch, type WatchOptions } from "./watch.js";

/** How to reach a server, and what to be told of the connection. */
export interface ConnectOptions extends LinkOptions {}

/** Makes a client. Nothing is opened before it is used. */
export function connect(options: ConnectOptions = {}): Client {
  return new Client(options);
}

/** See the module. */
export class Client {
  readonly #link: Link;
  readonly #host: ChannelHost;
  readonly #open = new Set<{ close(): void }>();
  #isClosed = false;

  constructor(options: ConnectOptions) {
    const link = new Link(options);
    this.#link = link;
    this.#host = {
      clock: link.clock,
      random: link.random,
      join: (follower) => link.join(follower),
      leave: (follower) => link.leave(follower),
      retry: (scope) => link.retry(scope),
      forget: (each) => this.#open.delete(each),
      publish: async (scope, event, data) => {
        this.#checkOpen();
        return link.publish(scope, event, data);
      },
      readJson: (url, signal) => link.readJson(url, signal),
    };
  }

  /** Where the connection stands. */
  get phase(): Phase {
    return this.#link.phase;
  }

  /** Follows one scope or several of one feed; with a callback it starts at once. */
  watch(
    scopes: string | readonly string[],
    options?: WatchOptions,
    listener?: (notice: Notice) => void,
  ): Watch {
    this.#checkOpen();
    return this.#keep(new Watch(this.#host, scopes, options, listener));
  }

  /** Follows a declared channel; with a callback it starts at once. */
  channel<T = unknown>(
    name: string,
    params: Params = {},
    options?: ChannelOptions<T>,
    listener?: (notice: ChannelNotice<T>) => void,
  ): Channel<T> {
    this.#checkOpen();
    return this.#keep(new Channel<T>(this.#host, name, params, options, listener));
  }

  /** Gives up the connection there is and dials at once; brings back one that has failed. */
  reconnectNow(): void {
    this.#link.reconnectNow();
  }

  /** Takes another token, after a sign-in or out; what was refused is asked for again. */
  setToken(token: TokenSource | undefined): void {
    this.#link.setToken(token);
  }

  /** Ends every watch and channel and the connection; this client can't be used again. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const each of [...this.#open]) each.close();
    this.#link.close();
  }

  #keep<W extends { close(): void }>(each: W): W {
    this.#open.add(each);
    return each;
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new TidingsError("closed", "the client was closed");
  }
}

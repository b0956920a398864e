/** The server's address, and the ways to it that this place has. */

import type { Clock } from "./clock.js";
import { TidingsError } from "./errors.js";
import { openStreams } from "./sse.js";
import type { Preference, Transport, TransportEvents, TransportKind } from "./transport.js";
import { openSocket, type SocketConstructor } from "./ws.js";

/** Where a server is and how it may be reached. */
export interface EndpointOptions {
  /** The server's address, with its path prefix if it has one; the page's own origin by default. */
  url?: string | URL;
  /** The build of this application; the server tells when another one is out. */
  build?: string;
  /** `auto` takes SSE where no socket gets through. */
  transport?: Preference;
  /** The constructor of sockets, for a Node without one. */
  WebSocket?: SocketConstructor;
  /** The way to make requests. */
  fetch?: typeof fetch;
}

/** See the module. Making one looks at nothing that only a page has. */
export class Endpoint {
  readonly #options: EndpointOptions;
  readonly #clock: Clock;

  constructor(options: EndpointOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Which transport may be used; streams alone where there are no sockets. */
  get preference(): Preference {
    return this.#options.transport ?? (this.#Socket === undefined ? "sse" : "auto");
  }

  /** The address that ends in `/v1/`. */
  get base(): URL {
    const own = typeof location === "undefined" ? undefined : location.origin;
    const given = this.#options.url ?? own;
    if (given === undefined) {
      throw new TidingsError("bad-request", "outside of a page the client needs a url");
    }
    const url = new URL(given, own);
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/v1/`;
    url.search = "";
    url.hash = "";
    return url;
  }

  /** Dials. */
  open(kind: TransportKind, events: TransportEvents): Transport {
    const [base, clock, Socket] = [this.base, this.#clock, this.#Socket];
    if (kind === "sse" || Socket === undefined) {
      return openStreams({ base, fetch: this.#fetch, clock }, events);
    }
    const url = new URL("socket", base);
    if (this.#options.build !== undefined) url.searchParams.set("build", this.#options.build);
    return openSocket({ url, Socket, clock }, events);
  }

  /** Reads a URL, which may be relative to the server, as JSON. */
  async readJson(text: string, token: string | undefined, signal: AbortSignal): Promise<unknown> {
    const { base } = this;
    const url = new URL(text, base);
    // The URL may lead anywhere; the token is for its own server only.
    const isOwn = url.origin === base.origin && token !== undefined;
    const authorization = isOwn && { Authorization: `Bearer ${token}` };
    const headers = { Accept: "application/json", ...authorization };
    const answer = await this.#fetch(url, { headers, signal, cache: "no-store" });
    if (!answer.ok) throw new TidingsError("bad-answer", `the server answered ${answer.status}`);
    return await answer.json();
  }

  get #Socket(): SocketConstructor | undefined {
    return this.#options.WebSocket ?? (globalThis as { WebSocket?: SocketConstructor }).WebSocket;
  }

  get #fetch(): typeof fetch {
    return this.#options.fetch ?? ((input, init) => fetch(input, init));
  }
}

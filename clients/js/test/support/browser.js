/** A real browser, the pages it opens, and the network between them and the server. */

import { existsSync } from "node:fs";
import { once } from "node:events";
import { createServer } from "node:http";
import * as net from "node:net";

import { build } from "esbuild";
import { chromium } from "playwright-core";

import { skip as noServer, Tidings } from "./tidings.js";

const EXECUTABLE = process.env.TIDINGS_CHROMIUM ?? "/usr/bin/chromium";

/** Quiet: nothing of the browser's own goes to the network. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Why the tests in a browser are skipped; false if they are not. */
export const skip = noServer
  ? noServer
  : !process.env.TIDINGS_BIN
    ? "set TIDINGS_BIN: pages need a server that lists their origin"
    : existsSync(EXECUTABLE)
      ? false
      : `there is no browser at ${EXECUTABLE}; TIDINGS_CHROMIUM may name one`;

export class Browser {
  #browser;
  #context;
  #pages;
  #strangers;
  #relay;

  async start() {
    this.#pages = await servePages(() => this.url);
    this.#strangers = await servePages(() => this.url);
    this.server = new Tidings(`[serve]\norigins = ["${urlOf(this.#pages)}"]\n`);
    await this.server.start();
    this.#relay = new Relay(Number(new URL(this.server.url).port));
    await this.#relay.mend();
    this.#browser = await chromium.launch({
      executablePath: EXECUTABLE,
      args: FLAGS,
      ignoreDefaultArgs: ["--disable-back-forward-cache"],
    });
    this.#context = await this.#browser.newContext();
  }

  async stop() {
    await this.#browser?.close();
    await this.#relay?.cut();
    for (const server of [this.#pages, this.#strangers]) server?.close();
    await this.server?.stop();
  }

  /** The server's address, as the pages have it: through the relay. */
  get url() {
    return this.#relay.url;
  }

  /** A page of an origin that the server does not list. */
  get foreignUrl() {
    return urlOf(this.#strangers);
  }

  /** A tab with the bundle in it. */
  async open(url = urlOf(this.#pages)) {
    const page = await this.#context.newPage();
    await page.goto(url);
    return page;
  }

  /** The network goes away. */
  async cut() {
    await this.#context.setOffline(true);
    await this.#relay.cut();
  }

  /** The network comes back. */
  async mend() {
    await this.#relay.mend();
    await this.#context.setOffline(false);
  }
}

/** Passes bytes on between the pages and the server, unless it is cut. */
class Relay {
  #target;
  #port = 0;
  #server;
  #sockets = new Set();

  constructor(target) {
    this.#target = target;
  }

  get url() {
    return `http://127.0.0.1:${this.#port}`;
  }

  async mend() {
    this.#server = net.createServer((near) => {
      const far = net.connect(this.#target, "127.0.0.1");
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ]) {
        this.#sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = this.#server.address().port;
  }

  async cut() {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

/** Serves one page, with the bundle and the server's address in it. */
async function servePages(serverUrl) {
  const bundle = await build({
    entryPoints: [new URL("../../dist/index.js", import.meta.url).pathname],
    bundle: true,
    platform: "browser",
    format: "iife",
    globalName: "tidings",
    write: false,
  });
  const script = bundle.outputFiles[0].text;
  const server = createServer((request, answer) => {
    if (request.url !== "/") return answer.writeHead(404).end();
    const head = `<!doctype html><title>Tidings</title><script>${script};`;
    answer.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
    answer.end(`${head}var serverUrl = ${JSON.stringify(serverUrl())}</script>`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function urlOf(server) {
  return `http://127.0.0.1:${server.address().port}`;
}

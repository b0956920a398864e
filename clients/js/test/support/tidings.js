/** A real server: the one at `TIDINGS_HTTP`, or one that is started from `TIDINGS_BIN`. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { until } from "./clock.js";

const CONFIG = `
[channels.room]
params = { id = "int" }
policy = "true"
events = ["message", "typing"]
publish = "true"
history = 100
presence = true
`;

/** Why the tests against a real server are skipped; false if they are not. */
export const skip =
  process.env.TIDINGS_BIN || process.env.TIDINGS_HTTP
    ? false
    : "set TIDINGS_BIN to a server's binary, or TIDINGS_HTTP to a running one's address";

export class Tidings {
  url = process.env.TIDINGS_HTTP;
  #process;
  #folder;
  #port;
  #config;

  /** `config` goes before the channels that every test finds. */
  constructor(config = "") {
    this.#config = config + CONFIG;
  }

  /** True if this server may be killed. */
  get isOwn() {
    return process.env.TIDINGS_BIN !== undefined;
  }

  async start() {
    if (!this.isOwn) return this;
    this.#folder = await mkdtemp(join(tmpdir(), "tidings-js-"));
    this.#port = await freePort();
    this.url = `http://127.0.0.1:${this.#port}`;
    await writeFile(join(this.#folder, "tidings.toml"), this.#config);
    await this.restart();
    return this;
  }

  async restart() {
    const flags = ["serve", "--dev", "--data", join(this.#folder, "data")];
    flags.push("--config", join(this.#folder, "tidings.toml"));
    flags.push("--http", `127.0.0.1:${this.#port}`);
    flags.push("--mark", `127.0.0.1:${await freePort()}`);
    flags.push("--admin", `127.0.0.1:${await freePort()}`);
    const stdio = ["ignore", "ignore", "inherit"];
    this.#process = spawn(resolve(process.env.TIDINGS_BIN), flags, { cwd: this.#folder, stdio });
    await until(
      () =>
        fetch(`${this.url}/v1/whoami`).then(
          () => true,
          () => false,
        ),
      "the server answers",
    );
  }

  /** Ends the process without a word, as a crash does. */
  async kill() {
    const exited = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await exited;
  }

  async stop() {
    if (!this.isOwn) return;
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Publishes a document and returns its version's position. */
  async write(path, body) {
    const answer = await fetch(`${this.url}/v1/documents${path}`, { method: "PUT", body });
    if (!answer.ok)
      throw new Error(`PUT ${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.headers.get("Tidings-Cursor");
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

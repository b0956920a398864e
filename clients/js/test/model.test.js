/**
 * Random lives against a model: the silence checker of this client.
 *
 * 1. A server keeps a log of two epochs' worth of changes, of which only the last few are kept.
 * 2. A seeded run writes, cuts, beats, moves the epoch, joins and leaves; readers are fast or slow.
 * 3. At the end everybody reads on until all is quiet.
 * 4. Each reader must have every change after where it began, in order and once, or a gap there.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { isCovered } from "../dist/cursor.js";
import { Network, settle } from "./support/network.js";

const SCOPE = "doc:/notes/";
const KEPT = 12;
/** So many notices are more than any reader can be behind. */
const QUIET_BY = 2_000;
const RUNS = 60;

/** A small generator of repeatable numbers in [0, 1). */
function seeded(seed) {
  let state = seed * 2_654_435_761 + 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** A server whose ring is short, so that resumes fail now and then. */
class Feed {
  epoch = 0;
  seq = 0;
  network = new Network();
  #following = new Set();
  /** Frames on their way, by socket: what a client asks may cross what it is told. */
  #inFlight = new Map();
  isSlow = false;

  constructor() {
    this.network.onFrame = (socket, frame) => {
      if (frame.t === "subscribe") this.#subscribe(socket, frame);
      if (frame.t === "unsubscribe") this.#following.delete(socket);
      return frame.t === "subscribe";
    };
  }

  at(seq = this.seq) {
    return `e${this.epoch}:${seq}`;
  }

  #change(seq) {
    return { cursor: this.at(seq), op: "publish", name: "/notes/a", version: seq };
  }

  #changes(seqs) {
    const changes = seqs.map((seq) => this.#change(seq));
    return { t: "changes", scope: SCOPE, cursor: this.at(seqs.at(-1)), changes };
  }

  #subscribe(socket, { id, since }) {
    const [epoch, seq] = since?.split(":") ?? [];
    const isKept = epoch === `e${this.epoch}` && seq <= this.seq && seq >= this.seq - KEPT;
    const cursor = this.at();
    this.#say(socket, {
      t: "ack",
      id,
      scope: SCOPE,
      cursor,
      resumed: since !== undefined && isKept,
    });
    this.#following.add(socket);
    if (since === undefined) return;
    if (!isKept) return this.#say(socket, { t: "gap", scope: SCOPE, reason: "too-old", cursor });
    const missed = [];
    for (let next = Number(seq) + 1; next <= this.seq; next++) missed.push(next);
    if (missed.length > 0) this.#say(socket, this.#changes(missed));
  }

  #say(socket, frame) {
    if (!this.#inFlight.has(socket)) this.#inFlight.set(socket, []);
    this.#inFlight.get(socket).push(frame);
    if (!this.isSlow) this.deliver();
  }

  /** What is on its way arrives, and what that causes too. */
  deliver() {
    for (const [socket, frames] of this.#inFlight) {
      while (frames.length > 0) socket.say(frames.shift());
    }
  }

  write(count) {
    const seqs = Array.from({ length: count }, () => ++this.seq);
    for (const socket of this.#following) this.#say(socket, this.#changes(seqs));
  }

  beat() {
    for (const socket of this.#following)
      this.#say(socket, { t: "beat", cursors: { [SCOPE]: this.at() } });
  }

  cut() {
    this.#following.clear();
    this.#inFlight.clear();
    this.network.last?.cut();
  }

  /** The history is lost: everybody is cut, and the sequence begins anew. */
  restart() {
    this.epoch += 1;
    this.seq = 0;
    this.cut();
  }
}

/** Comes after everything that is under way. */
async function quiet() {
  await settle();
  return "quiet";
}

/** A consumer that takes notices at its own pace and checks them as they come. */
class Reader {
  position;
  #isExcused = false;
  #iterator;

  constructor(client, since, queueLengthMax) {
    this.watch = client.watch("/notes/", { since, queueLengthMax });
    this.since = since;
    this.position = since;
    this.#iterator = this.watch[Symbol.asyncIterator]();
    this.#next = this.#iterator.next();
  }

  #next;

  /** Joined with a position that the client has not reached: changes up to it may come again. */
  #isAhead(cursor) {
    return this.position === this.since && isCovered(cursor, this.since);
  }

  /** Takes up to `count` notices that are there. */
  async read(count) {
    for (let at = 0; at < count; at++) {
      const result = await Promise.race([this.#next, quiet()]);
      if (result === "quiet" || result.done) return at;
      this.#next = this.#iterator.next();
      this.#check(result.value);
    }
    return count;
  }

  #check(notice) {
    if (notice.kind === "gap") this.#isExcused = true;
    if (notice.kind === "change" && this.position !== undefined && !this.#isExcused) {
      const [epoch, seq] = this.position.split(":");
      if (this.#isAhead(notice.cursor)) return;
      assert.equal(
        notice.cursor,
        `${epoch}:${Number(seq) + 1}`,
        "the next one, neither more nor less",
      );
    }
    if (notice.kind === "change") this.#isExcused = false;
    if (notice.cursor !== undefined) this.position = notice.cursor;
    if (notice.kind === "gap" && notice.cursor === undefined) this.position = undefined;
    else if (notice.kind === "gap") this.#isExcused = false;
  }
}

async function live(seed) {
  const random = seeded(seed);
  const below = (limit) => Math.floor(random() * limit);
  const feed = new Feed();
  const client = feed.network.connect({ random, keepMs: below(2) * 300 });
  const readers = [];
  const join = () => {
    const since = [undefined, feed.at(Math.max(0, feed.seq - below(20)))][below(2)];
    readers.push(new Reader(client, since, [4, 1_024][below(2)]));
  };
  join();
  for (let step = 0; step < 60; step++) {
    const dice = below(100);
    feed.isSlow = below(3) > 0;
    if (!feed.isSlow) feed.deliver();
    if (dice < 40) feed.write(1 + below(4));
    else if (dice < 50) feed.beat();
    else if (dice < 60) feed.cut();
    else if (dice < 62) feed.restart();
    else if (dice < 68) join();
    else if (dice < 72 && readers.length > 1)
      readers.splice(below(readers.length), 1)[0].watch.close();
    else if (dice < 85) for (const reader of readers) await reader.read(below(6));
    else await feed.network.clock.advance(below(3_000));
  }
  await finish(feed, readers);
  client.close();
  assert.equal(feed.network.clock.pending, 0);
}

async function finish(feed, readers) {
  feed.isSlow = false;
  feed.deliver();
  for (let round = 0; round < 4; round++) {
    await feed.network.clock.advance(5_000);
    feed.beat();
    for (const reader of readers) await reader.read(QUIET_BY);
  }
  for (const { position } of readers) assert.equal(position, feed.at());
}

test("L65, P3: in random lives nobody misses a change without being told", async () => {
  for (let seed = 1; seed <= RUNS; seed++) {
    await live(seed).catch((error) => {
      throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
    });
  }
});

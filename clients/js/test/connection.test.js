/** The connection's state machine, driven by hand: no sockets, no timers, no clock. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Connection } from "../dist/connection.js";

/** A machine with both of its clocks. */
class Machine {
  connection = new Connection("socket", () => 0.5);
  now = 0;
  wallAhead = 0;
  done = [];

  get wall() {
    return this.now + this.wallAhead;
  }

  /** Takes what is to do and returns its names. */
  actions() {
    const taken = [];
    for (let action; (action = this.connection.pollAction());) taken.push(action);
    this.done.push(...taken);
    return taken.map(({ do: name }) => name);
  }

  timeout() {
    return this.connection.pollTimeout(this.now, this.wall);
  }

  /** Jumps to the next timer, again and again, until `ms` have passed. */
  advance(ms) {
    const end = this.now + ms;
    for (;;) {
      const wait = this.timeout();
      if (wait === undefined || this.now + wait > end) break;
      this.now += wait;
      this.connection.handleTime(this.now, this.wall);
    }
    this.now = end;
    return this.actions();
  }

  goLive(heartbeatMs = 15_000) {
    this.connection.want(this.now);
    this.actions();
    this.greet(heartbeatMs);
  }

  greet(heartbeatMs = 15_000) {
    const { generation } = this.connection;
    this.connection.handleOpened(generation, this.now);
    this.connection.handleHello(generation, { v: 1, heartbeatMs }, this.now);
    this.actions();
    assert.equal(this.connection.phase, "live");
  }

  hear() {
    this.connection.handleHeard(this.connection.generation, this.now);
  }

  lose(code = 1006) {
    this.connection.handleClosed(this.connection.generation, code, this.now);
  }
}

test("T61: two silent heartbeats close the link with 4000 and dial again", () => {
  const machine = new Machine();
  machine.goLive();
  assert.deepEqual(machine.advance(29_999), ["beat"]);
  assert.deepEqual(machine.advance(1), ["close"]);
  assert.equal(machine.done.at(-1).code, 4000);
  assert.deepEqual(machine.advance(500), ["dial"]);
});

test("any frame counts as life", () => {
  const machine = new Machine();
  machine.goLive();
  for (let at = 0; at < 10; at++) {
    machine.advance(20_000);
    machine.hear();
  }
  assert.equal(machine.connection.phase, "live");
});

test("beats follow the heartbeat that the server's hello gives", () => {
  const machine = new Machine();
  machine.goLive(4_000);
  let beats = 0;
  for (let at = 0; at < 10; at++) {
    beats += machine.advance(4_000).length;
    machine.hear();
  }
  assert.equal(beats, 10);
});

for (const standsStill of [true, false]) {
  const clock = standsStill ? "stood still" : "ran on";
  test(`L66, T61: a dead link is noticed within 5 s of waking; the clock ${clock}`, () => {
    const machine = new Machine();
    machine.goLive();
    machine.advance(1_000);
    machine.timeout();
    if (standsStill) machine.wallAhead += 600_000;
    else machine.now += 600_000;
    const wokeAt = machine.now;
    const actions = machine.advance(4_999);
    assert.deepEqual(actions.slice(0, 2), ["beat", "close"]);
    assert.ok(machine.now - wokeAt < 5_000);
  });

  test(`L66: a link that answers the probe after waking stays; the clock ${clock}`, () => {
    const machine = new Machine();
    machine.goLive();
    machine.timeout();
    if (standsStill) machine.wallAhead += 600_000;
    else machine.now += 600_000;
    assert.deepEqual(machine.advance(2_000), ["beat"]);
    machine.hear();
    assert.equal(machine.advance(4_000).includes("close"), false);
    assert.equal(machine.connection.phase, "live");
  });
}

test("L63: timers that run once a minute don't end a link that is heard", () => {
  const machine = new Machine();
  machine.goLive();
  for (let minute = 0; minute < 10; minute++) {
    machine.timeout();
    for (let beat = 0; beat < 4; beat++) {
      machine.now += 15_000;
      machine.hear();
    }
    machine.connection.handleTime(machine.now, machine.wall);
  }
  assert.equal(machine.connection.phase, "live");
});

test("L51: a wall clock set an hour back or forth costs at most a probe", () => {
  const machine = new Machine();
  machine.goLive();
  for (const shift of [3_600_000, -3_600_000]) {
    machine.timeout();
    machine.wallAhead += shift;
    machine.advance(2_000);
    machine.hear();
    machine.advance(5_000);
    machine.hear();
  }
  assert.equal(machine.connection.phase, "live");
});

test("T60, L68: the server's delay is obeyed although the close would start one too", () => {
  const machine = new Machine();
  machine.goLive();
  machine.connection.handleReconnect(machine.connection.generation, 20_000, machine.now);
  assert.equal(machine.connection.phase, "leaving");
  machine.now += 100;
  machine.lose(1001);
  assert.deepEqual(machine.advance(19_899), []);
  assert.deepEqual(machine.advance(2_000), ["dial"]);
});

test("L70: a server that does not close is left when it is time to come back", () => {
  const machine = new Machine();
  machine.goLive();
  machine.connection.handleReconnect(machine.connection.generation, 1_000, machine.now);
  assert.deepEqual(machine.advance(2_000), ["close", "dial"]);
});

test("L70: a thousand clients with delays over a window come back spread over it", () => {
  const dials = [];
  for (let client = 0; client < 1_000; client++) {
    const machine = new Machine();
    machine.goLive();
    machine.connection.handleReconnect(machine.connection.generation, client * 10, 0);
    machine.lose(1001);
    for (;;) {
      machine.now += machine.timeout();
      machine.connection.handleTime(machine.now, machine.wall);
      if (machine.actions().includes("dial")) break;
    }
    dials.push(machine.now);
  }
  const perSecond = new Array(11).fill(0);
  for (const at of dials) perSecond[Math.floor(at / 1_000)] += 1;
  assert.ok(
    perSecond.every((count) => count <= 101),
    String(perSecond),
  );
  assert.ok(dials.every((at, client) => at >= client * 10));
});

test("T60: what a replaced link still reports has no effect", () => {
  const machine = new Machine();
  machine.goLive();
  const old = machine.connection.generation;
  machine.connection.reconnectNow(machine.now);
  assert.deepEqual(machine.actions(), ["close", "dial"]);
  machine.connection.handleClosed(old, 1006, machine.now);
  machine.connection.handleReconnect(old, 60_000, machine.now);
  machine.connection.handleOpened(old, machine.now);
  assert.equal(machine.connection.phase, "dialling");
  machine.greet();
  machine.connection.handleClosed(old, 1008, machine.now);
  assert.equal(machine.connection.phase, "live");
});

test("L68: a hundred failures keep one timer, grow to the cap, and success resets", () => {
  const machine = new Machine();
  machine.connection.want(0);
  machine.actions();
  const waits = [];
  for (let failure = 0; failure < 100; failure++) {
    machine.lose();
    machine.lose();
    waits.push(machine.timeout());
    assert.deepEqual(machine.advance(machine.timeout()), ["dial"]);
  }
  assert.deepEqual(waits.slice(0, 5), [375, 750, 1_500, 3_000, 3_000]);
  assert.equal(waits.at(-1), 3_000);
  machine.greet();
  machine.advance(6_000);
  machine.lose();
  assert.equal(machine.timeout(), 375);
});

test("a server that greets and leaves at once is not dialled in a tight loop", () => {
  const machine = new Machine();
  machine.goLive();
  const waits = [];
  for (let round = 0; round < 4; round++) {
    machine.lose();
    waits.push(machine.timeout());
    machine.advance(machine.timeout());
    machine.greet();
  }
  assert.deepEqual(waits, [375, 750, 1_500, 3_000]);
});

test("a dial or a greeting that hangs is given up", () => {
  for (const isOpened of [false, true]) {
    const machine = new Machine();
    machine.connection.want(0);
    if (isOpened) machine.connection.handleOpened(machine.connection.generation, 0);
    machine.actions();
    assert.deepEqual(machine.advance(10_000), ["close"]);
    assert.equal(machine.connection.phase, "waiting");
  }
});

test("T54: 1001, 1013, 4001 and 1006 are dialled again, 1008 is not", () => {
  for (const code of [1001, 1006, 1009, 1013, 4001]) {
    const machine = new Machine();
    machine.goLive();
    machine.lose(code);
    assert.equal(machine.connection.phase, "waiting");
  }
  const machine = new Machine();
  machine.goLive();
  machine.lose(1008);
  assert.equal(machine.connection.phase, "failed");
  assert.equal(machine.timeout(), undefined);
});

test("L73: another protocol version is one typed end", () => {
  const machine = new Machine();
  machine.connection.want(0);
  const { generation } = machine.connection;
  machine.connection.handleOpened(generation, 0);
  machine.connection.handleHello(generation, { v: 2 }, 0);
  machine.actions();
  assert.equal(machine.done.at(-1).cause, "protocol-version");
  assert.equal(machine.connection.phase, "failed");
});

test("L66: reconnectNow ends every wait, also one that the server chose", () => {
  const machine = new Machine();
  machine.goLive();
  machine.connection.handleReconnect(machine.connection.generation, 300_000, 0);
  machine.lose(1001);
  machine.connection.probe(machine.now);
  assert.deepEqual(machine.actions(), []);
  machine.connection.reconnectNow(machine.now);
  assert.deepEqual(machine.actions(), ["dial"]);
});

test("coming online ends a wait of our own", () => {
  const machine = new Machine();
  machine.goLive();
  machine.lose();
  machine.connection.probe(machine.now);
  assert.deepEqual(machine.actions(), ["dial"]);
});

test("streams are tried where no socket gets through, and sockets again in turn", () => {
  const connection = new Connection("auto", () => 0);
  const tried = [];
  let now = 0;
  connection.want(now);
  for (let dial = 0; dial < 6; dial++) {
    tried.push(connection.pollAction().transport);
    connection.handleClosed(connection.generation, 1006, now);
    now += 5_000;
    connection.handleTime(now, now);
  }
  assert.deepEqual(tried, ["socket", "socket", "sse", "socket", "sse", "socket"]);
});

test("L74: a machine that nobody wants has no timer and nothing to do", () => {
  const machine = new Machine();
  assert.equal(machine.timeout(), undefined);
  assert.deepEqual(machine.actions(), []);
});

test("where sockets have worked, a server that comes back is given time before streams", () => {
  const connection = new Connection("auto", () => 0);
  connection.want(0);
  connection.pollAction();
  connection.handleOpened(connection.generation, 0);
  connection.handleHello(connection.generation, { v: 1 }, 0);
  connection.pollAction();
  const tried = [];
  for (let now = 0; now < 50_000; now += 5_000) {
    connection.handleClosed(connection.generation, 1006, now);
    connection.handleTime(now + 5_000, now + 5_000);
    tried.push(connection.pollAction().transport);
  }
  assert.deepEqual(tried.slice(0, 8), new Array(8).fill("socket"));
  assert.equal(tried[8], "sse");
});

test("a heartbeat that no server means is not obeyed", () => {
  const machine = new Machine();
  machine.goLive(1);
  assert.deepEqual(machine.advance(1_000), ["beat"]);
});

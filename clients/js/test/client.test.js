/** The whole client against a server in the same thread, with a clock that the test moves. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { change, changes, Network, recorder, settle } from "./support/network.js";

const SCOPE = "doc:/notes/";

/** A client with one live watch at e:5. */
async function liveWatch(options = {}, watchOptions = {}) {
  const network = new Network();
  network.heads.set(SCOPE, "e:5");
  const client = network.connect(options);
  const heard = recorder();
  const watch = client.watch("/notes/", watchOptions, heard);
  await settle();
  return { network, client, watch, heard };
}

test("L74: a client, a watch and a channel cost nothing until they are used", async () => {
  const network = new Network();
  const client = network.connect();
  const watch = client.watch("/notes/");
  const channel = client.channel("room", { id: 1 });
  await settle();
  assert.equal(watch.state(), "pending");
  assert.equal(channel.state, "pending");
  assert.equal(network.sockets.length, 0);
  assert.equal(network.clock.pending, 0);
});

test("P7: after open() every change comes, typed and in order", async () => {
  const { network, watch, heard } = await liveWatch();
  await watch.open();
  network.last.say(changes(SCOPE, 6, 7));
  assert.deepEqual(heard.cursors(), ["e:6", "e:7"]);
  assert.deepEqual(heard.of("change")[0], { kind: "change", scope: SCOPE, ...change(6) });
  assert.equal(watch.cursors.get(SCOPE), "e:7");
  assert.deepEqual(heard.states(), ["connecting", "live"]);
});

test("L73: frames that come twice, or two at once, change nothing", async () => {
  const { network, heard } = await liveWatch();
  for (const seqs of [[6], [6], [6, 7], [7, 8]]) {
    network.last.say(changes(SCOPE, ...seqs));
    network.last.say(changes(SCOPE, ...seqs));
  }
  network.last.sayText('{"t":"news","scope":"doc:/notes/"}');
  network.last.sayText("not json");
  assert.deepEqual(heard.cursors(), ["e:6", "e:7", "e:8"]);
});

test("a transaction, whose changes share one position, comes whole", async () => {
  const { network, heard } = await liveWatch();
  const rows = [change(6, "/a"), change(6, "/b")];
  network.last.say({ t: "changes", scope: SCOPE, cursor: "e:6", changes: rows });
  assert.deepEqual(
    heard.of("change").map(({ name }) => name),
    ["/a", "/b"],
  );
});

test("C55, T9: a hole is no loss, and a beat moves the position past it", async () => {
  const { network, watch, heard } = await liveWatch();
  network.last.say(changes(SCOPE, 7));
  network.last.say({ t: "beat", cursors: { [SCOPE]: "e:20" } });
  assert.equal(heard.of("gap").length, 0);
  assert.equal(watch.cursors.get(SCOPE), "e:20");
  network.last.cut();
  await network.clock.advance(500);
  assert.equal(network.last.of("subscribe")[0].since, "e:20");
});

test("a beat that lags behind does not move the position back", async () => {
  const { network, watch } = await liveWatch();
  network.last.say(changes(SCOPE, 9));
  network.last.say({ t: "beat", cursors: { [SCOPE]: "e:7" } });
  assert.equal(watch.cursors.get(SCOPE), "e:9");
});

test("P3: a gap is told with reason and position, and goes on from there", async () => {
  const { network, watch, heard } = await liveWatch();
  network.last.say({ t: "gap", scope: SCOPE, reason: "lapped", cursor: "e:40", delay_ms: 10 });
  const expected = { kind: "gap", scope: SCOPE, reason: "lapped", cursor: "e:40", delayMs: 10 };
  assert.deepEqual(heard.of("gap"), [expected]);
  assert.equal(watch.cursors.get(SCOPE), "e:40");
});

test("P3: an epoch that changes without a word is told as a gap", async () => {
  const { network, heard } = await liveWatch();
  const anew = { ...change(1), cursor: "f:1" };
  network.last.say({ t: "changes", scope: SCOPE, cursor: "f:1", changes: [anew] });
  assert.deepEqual(
    heard.of("gap").map(({ reason }) => reason),
    ["epoch"],
  );
  assert.deepEqual(heard.cursors(), ["f:1"]);
});

test("the head in an acknowledgement does not hide the replay that follows it", async () => {
  const network = new Network();
  network.heads.set(SCOPE, "e:9");
  const heard = recorder();
  network.connect().watch("/notes/", { since: "e:5" }, heard);
  await settle();
  assert.equal(network.last.of("subscribe")[0].since, "e:5");
  network.last.say(changes(SCOPE, 6, 7, 8, 9));
  assert.deepEqual(heard.cursors(), ["e:6", "e:7", "e:8", "e:9"]);
});

test("L64, C61: after a reconnect each scope is asked for once, from its position", async () => {
  const network = new Network();
  const client = network.connect();
  const watches = Array.from({ length: 20 }, (_, at) => {
    network.heads.set(`doc:/d${at}`, `e:${at}`);
    return client.watch(`/d${at}`, {}, () => {});
  });
  await settle();
  network.last.cut();
  for (const watch of watches.slice(0, 5)) watch.close();
  client.watch("/late1", {}, () => {});
  client.watch("/late2", {}, () => {});
  await network.clock.advance(500);
  assert.equal(network.sockets.length, 2);
  const asked = network.last.of("subscribe");
  assert.equal(asked.length, 17);
  assert.equal(new Set(asked.map(({ scope }) => scope)).size, 17);
  for (let at = 5; at < 20; at++) {
    assert.equal(asked.find(({ scope }) => scope === `doc:/d${at}`).since, `e:${at}`);
  }
  assert.equal(asked.find(({ scope }) => scope === "doc:/late1").since, undefined);
});

test("T73: a resume carries the position and nothing of the old session", async () => {
  const { network } = await liveWatch();
  network.last.cut();
  await network.clock.advance(500);
  assert.deepEqual(network.last.sent, [
    { t: "hello", v: 1 },
    { t: "subscribe", id: "2", scope: SCOPE, since: "e:5" },
  ]);
});

test("L65: a socket killed at the n-th frame, for every n, ends live and right", async () => {
  for (let killAt = 1; killAt <= 60; killAt++) {
    const network = new Network();
    const log = Array.from({ length: 12 }, (_, at) => at + 1);
    let said = 0;
    let isCut = false;
    const say = (socket, frame) => {
      said += 1;
      if (said === killAt && !isCut) {
        isCut = true;
        socket.cut();
      } else socket.say(frame);
    };
    network.onFrame = (socket, frame) => {
      const at = network.sockets.indexOf(socket);
      const isCurrent = () => socket.onmessage !== null && at === network.sockets.length - 1;
      if (frame.t === "hello") say(socket, { t: "hello", v: 1, heartbeat_ms: 15_000 });
      if (frame.t !== "subscribe") return frame.t === "hello";
      const since = Number(frame.since?.split(":")[1] ?? 0);
      say(socket, {
        t: "ack",
        id: frame.id,
        scope: frame.scope,
        cursor: `e:${since}`,
        resumed: since > 0,
      });
      for (const seq of log) if (seq > since && isCurrent()) say(socket, changes(frame.scope, seq));
      return true;
    };
    const heard = recorder();
    const client = network.connect();
    client.watch("/notes/", { since: "e:0" }, heard);
    await network.clock.advance(5_000);
    assert.deepEqual(
      heard.cursors(),
      log.map((seq) => `e:${seq}`),
      `killed at ${killAt}`,
    );
    assert.equal(client.phase, "live");
    client.close();
  }
});

test("L66: after sleep a dead socket is replaced and the watch resumes", async () => {
  const { network, client } = await liveWatch();
  network.kill();
  network.clock.sleep(600_000, { standsStill: true });
  await network.clock.advance(5_000);
  assert.equal(network.sockets.length, 2);
  assert.equal(network.sockets[0].closedWith.code, 4000);
  assert.equal(network.last.of("subscribe")[0].since, "e:5");
  assert.equal(client.phase, "live");
});

test("L66: reconnectNow dials at once", async () => {
  const { network, client } = await liveWatch();
  client.reconnectNow();
  await settle();
  assert.equal(network.sockets.length, 2);
  assert.equal(client.phase, "live");
});

test("T60: a replaced socket is deaf, also to a close that comes late", async () => {
  const { network, client, heard } = await liveWatch();
  const old = network.last;
  const { onmessage, onclose, onopen } = old;
  client.reconnectNow();
  await settle();
  onopen({});
  onmessage({ data: JSON.stringify(changes(SCOPE, 6)) });
  onclose({ code: 1008 });
  assert.equal(old.onmessage, null);
  assert.equal(client.phase, "live");
  assert.deepEqual(heard.cursors(), []);
  assert.equal(network.sockets.length, 2);
});

test("L70, T60: told to come back later, what still comes counts, the delay holds", async () => {
  const { network, heard } = await liveWatch();
  const leaving = {
    t: "reconnect",
    delay_ms: 8_000,
    reason: "draining",
    cursors: { [SCOPE]: "e:6" },
  };
  network.last.say(leaving);
  network.last.say(changes(SCOPE, 7));
  network.last.cut(1001);
  assert.deepEqual(heard.cursors(), ["e:7"]);
  await network.clock.advance(7_999);
  assert.equal(network.sockets.length, 1);
  await network.clock.advance(1_000);
  assert.equal(network.last.of("subscribe")[0].since, "e:7");
});

test("L69: while away a watch is stale, and live again without a repeat", async () => {
  const { network, heard } = await liveWatch();
  network.last.say(changes(SCOPE, 6));
  network.last.cut();
  await network.clock.advance(500);
  assert.deepEqual(heard.states(), ["connecting", "live", "stale", "live"]);
  assert.deepEqual(heard.cursors(), ["e:6"]);
});

test("L72: a refused scope shows the reason, is not retried, and the others live on", async () => {
  const network = new Network();
  network.onFrame = (socket, frame) => {
    if (frame.t !== "subscribe" || frame.scope !== "doc:/b") return false;
    const fix = "ask for a token";
    socket.say({
      t: "error",
      id: frame.id,
      scope: frame.scope,
      code: "not-permitted",
      message: "no",
      fix,
      retry: false,
    });
    return true;
  };
  const client = network.connect();
  const heard = recorder();
  const watch = client.watch(["/a", "/b", "/c"], {}, heard);
  await assert.rejects(watch.open(), {
    code: "not-permitted",
    fix: "ask for a token",
    scope: "doc:/b",
  });
  assert.deepEqual(
    ["/a", "/b", "/c"].map((scope) => watch.state(scope)),
    ["live", "refused", "live"],
  );
  network.last.cut();
  await network.clock.advance(60_000);
  assert.deepEqual(
    network.last.of("subscribe").map(({ scope }) => scope),
    ["doc:/a", "doc:/c"],
  );
  watch.retry();
  await settle();
  assert.equal(network.last.of("subscribe").at(-1).scope, "doc:/b");
  const before = network.last.sent.length;
  client.setToken("another");
  await settle();
  assert.deepEqual(
    network.last.sent.slice(before).map(({ t }) => t),
    ["token", "subscribe"],
  );
});

test("C39: a refusal that may pass is asked again later, from the same position", async () => {
  const network = new Network();
  let refusals = 2;
  network.onFrame = (socket, frame) => {
    if (frame.t !== "subscribe" || refusals-- <= 0) return false;
    socket.say({
      t: "error",
      id: frame.id,
      scope: frame.scope,
      code: "rate-limited",
      message: "slow",
      retry: true,
    });
    return true;
  };
  const client = network.connect();
  const watch = client.watch("/notes/", { since: "e:3" }, () => {});
  await network.clock.advance(374);
  assert.equal(network.last.of("subscribe").length, 1);
  await network.clock.advance(2_000);
  assert.deepEqual(
    network.last.of("subscribe").map(({ since }) => since),
    ["e:3", "e:3", "e:3"],
  );
  assert.equal(watch.state(), "live");
});

test("a refusal that names a time is asked again then, not before", async () => {
  const network = new Network();
  network.onFrame = (socket, { t, id, scope }) => {
    if (t !== "subscribe" || network.last.of("subscribe").length > 1) return false;
    const error = { t: "error", id, scope, code: "subscription-limit", message: "full" };
    socket.say({ ...error, retry: true, retry_after_ms: 9_000 });
    return true;
  };
  const watch = network.connect().watch("/notes/", {}, () => {});
  await network.clock.advance(8_999);
  assert.equal(network.last.of("subscribe").length, 1);
  await network.clock.advance(1_000);
  assert.equal(watch.state(), "live");
});

test("C54: a channel that keeps nothing is followed anew after a cut, without a gap", async () => {
  const scope = "channel:news";
  const network = new Network();
  let epoch = "a";
  network.onFrame = (socket, { t, id }) => {
    if (t !== "subscribe") return false;
    socket.say({ t: "ack", id, scope, cursor: `${epoch}:5` });
    return true;
  };
  const heard = recorder();
  network.connect().watch(scope, {}, heard);
  await settle();
  for (epoch of ["b", "c"]) {
    network.last.cut();
    await network.clock.advance(4_000);
    const events = [{ event: "flash", data: epoch }];
    network.last.say({ t: "events", scope, cursor: `${epoch}:6`, events });
    network.last.say({ t: "beat", cursors: { [scope]: `${epoch}:7` } });
  }
  assert.deepEqual(
    heard.of("event").map(({ data }) => data),
    ["b", "c"],
  );
  assert.equal(heard.of("gap").length, 0);
});

test("a subscription that the server ends is over, with the reason", async () => {
  const { network, watch, heard } = await liveWatch();
  const error = { t: "error", scope: SCOPE, code: "revoked", message: "taken away", retry: false };
  network.last.say({ ...error, ended: true });
  assert.equal(watch.state(), "refused");
  assert.equal(heard.of("state").at(-1).error.code, "revoked");
  network.last.say(changes(SCOPE, 6));
  assert.deepEqual(heard.cursors(), []);
});

test("T54: a connection refused for good ends typed; a later watch learns it at once", async () => {
  const { network, client, heard } = await liveWatch();
  network.last.say({ t: "error", code: "closed-for-you", message: "no", retry: false });
  network.last.cut(1008);
  await network.clock.advance(60_000);
  assert.equal(network.sockets.length, 1);
  assert.equal(heard.of("state").at(-1).error.code, "closed-for-you");
  assert.equal(network.phases.at(-1), "failed:closed-for-you");
  const late = client.watch("/late");
  await assert.rejects(late.open(), { code: "closed-for-you" });
  client.reconnectNow();
  await settle();
  assert.equal(client.phase, "live");
  assert.equal(heard.states().at(-1), "live");
});

test("L73: a server of another protocol version is one typed error, not a loop", async () => {
  const network = new Network();
  network.onFrame = (socket, frame) => {
    if (frame.t === "hello") socket.say({ t: "hello", v: 2 });
    return frame.t === "hello";
  };
  const watch = network.connect().watch("/notes/");
  await assert.rejects(watch.open(), { code: "protocol-version" });
  await network.clock.advance(60_000);
  assert.equal(network.sockets.length, 1);
});

test("L76: mounting a thousand times is one subscription, and nothing is left", async () => {
  const { network, client, watch } = await liveWatch({ keepMs: 500 });
  const states = [];
  for (let mount = 0; mount < 1_000; mount++) {
    const again = client.watch(
      "/notes/",
      {},
      (notice) => notice.kind === "state" && states.push(notice.state),
    );
    if (mount % 3 === 0) await settle();
    again.close();
  }
  watch.close();
  await network.clock.advance(499);
  client.watch("/notes/", {}, () => {}).close();
  assert.equal(network.last.of("subscribe").length, 1);
  assert.deepEqual([...new Set(states)], ["live"]);
  await network.clock.advance(501);
  assert.equal(network.last.of("unsubscribe").length, 1);
  assert.equal(client.phase, "idle");
  assert.equal(network.clock.pending, 0);
});

test("C27: follow and leave back to back ends unsubscribed, the other way round live", async () => {
  const network = new Network();
  const client = network.connect();
  const other = client.watch("/other", {}, () => {});
  await settle();
  client.watch("/notes/", {}, () => {}).close();
  const watch = client.watch("/notes/", {}, () => {});
  await settle();
  const kinds = network.last.sent.filter(({ scope }) => scope === SCOPE).map(({ t }) => t);
  assert.deepEqual(kinds, ["subscribe", "unsubscribe", "subscribe"]);
  assert.equal(watch.state(), "live");
  assert.equal(other.state(), "live");
});

test("of two followers the later resumes from its own position, and none repeats", async () => {
  const { network, client, heard } = await liveWatch();
  network.last.say(changes(SCOPE, 6, 7));
  const late = recorder();
  client.watch("/notes/", { since: "e:5" }, late);
  await settle();
  assert.equal(network.last.of("subscribe").at(-1).since, "e:5");
  network.last.say(changes(SCOPE, 6, 7));
  network.last.say(changes(SCOPE, 8));
  assert.deepEqual(heard.cursors(), ["e:6", "e:7", "e:8"]);
  assert.deepEqual(late.cursors(), ["e:6", "e:7", "e:8"]);
});

test("P3: a follower that joins with a cursor of another epoch is told of its gap", async () => {
  const { network, client, heard } = await liveWatch();
  const late = recorder();
  client.watch("/notes/", { since: "old:5" }, late);
  await settle();
  assert.deepEqual(
    late.of("gap").map(({ reason, cursor }) => [reason, cursor]),
    [["epoch", "e:5"]],
  );
  assert.equal(heard.of("gap").length, 0);
  assert.equal(network.last.of("subscribe").length, 1);
});

test("a gap told to a late follower is none for the one that is past it", async () => {
  const { network, client, heard } = await liveWatch();
  network.last.say(changes(SCOPE, 300));
  network.onFrame = (socket, frame) => {
    if (frame.t !== "subscribe") return false;
    socket.say({ t: "ack", id: frame.id, scope: frame.scope, cursor: "e:300", resumed: false });
    socket.say({ t: "gap", scope: frame.scope, reason: "too-old", cursor: "e:300" });
    return true;
  };
  const late = recorder();
  client.watch("/notes/", { since: "e:1" }, late);
  await settle();
  assert.deepEqual(
    late.of("gap").map(({ reason }) => reason),
    ["too-old"],
  );
  assert.equal(heard.of("gap").length, 0);
  network.last.say(changes(SCOPE, 301));
  assert.deepEqual([heard.cursors().at(-1), late.cursors()], ["e:301", ["e:301"]]);
});

test("C64: a follower that wants every change lifts the conflation another asked for", async () => {
  const network = new Network();
  network.heads.set(SCOPE, "e:5");
  const client = network.connect();
  client.watch("/notes/", { minGapMs: 250 }, () => {});
  await settle();
  client.watch("/notes/", {}, () => {});
  await settle();
  const asked = network.last.of("subscribe").map(({ min_gap_ms, since }) => [min_gap_ms, since]);
  assert.deepEqual(asked, [
    [250, undefined],
    [undefined, "e:5"],
  ]);
});

test("a scope that the server spells otherwise is followed under its spelling", async () => {
  const network = new Network();
  network.onFrame = (socket, frame) => {
    if (frame.t !== "subscribe") return false;
    socket.say({
      t: "ack",
      id: frame.id,
      scope: "query:tasks?team=7",
      cursor: "e:1",
      resumed: false,
    });
    return true;
  };
  const heard = recorder();
  const watch = network.connect().watch("query:tasks?team=07", {}, heard);
  await settle();
  network.last.say(changes("query:tasks?team=7", 2));
  assert.deepEqual(heard.cursors(), ["e:2"]);
  assert.equal(heard.of("change")[0].scope, "query:tasks?team=07");
  watch.close();
  assert.equal(network.last.of("unsubscribe")[0].scope, "query:tasks?team=7");
});

test("the frame budget: no more than 128 subscribes are unanswered at a time", async () => {
  const network = new Network();
  const held = [];
  network.onFrame = (socket, frame) => frame.t === "subscribe" && held.push(frame) > 0;
  const client = network.connect();
  for (let at = 0; at < 300; at++) client.watch(`/d${at}`, {}, () => {});
  await settle();
  assert.equal(held.length, 128);
  network.onFrame = () => false;
  for (const frame of held) network.handle(network.last, frame);
  assert.equal(network.last.of("subscribe").length, 300);
});

test("a slow consumer is told, keeps its cursor, and goes on from it later", async () => {
  const network = new Network();
  network.heads.set(SCOPE, "e:0");
  const client = network.connect();
  const watch = client.watch("/notes/", { queueLengthMax: 4 });
  await watch.open();
  for (let seq = 1; seq <= 10; seq++) network.last.say(changes(SCOPE, seq));
  assert.equal(watch.state(), "behind");
  network.onFrame = (socket, frame) => {
    if (frame.t !== "subscribe") return false;
    const since = Number(frame.since.split(":")[1]);
    socket.say({ t: "ack", id: frame.id, scope: frame.scope, cursor: "e:10", resumed: true });
    for (let seq = since + 1; seq <= 10; seq++) socket.say(changes(SCOPE, seq));
    return true;
  };
  const seen = [];
  for await (const notice of watch) {
    if (notice.kind === "change") seen.push(notice.cursor);
    await settle();
    if (notice.cursor === "e:10") break;
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 10 }, (_, at) => `e:${at + 1}`),
  );
  assert.equal(watch.state(), "closed");
});

test("P11: a consumer that never reads costs a bounded queue, whatever the link does", async () => {
  const { network, client } = await liveWatch();
  const watch = client.watch("/notes/", { queueLengthMax: 8 });
  await watch.open();
  for (let round = 0; round < 50; round++) {
    network.last.say(changes(SCOPE, 6 + round));
    network.last.cut();
    await network.clock.advance(4_000);
  }
  const queued = [];
  const iterator = watch[Symbol.asyncIterator]();
  watch.close();
  for (;;) {
    const { done, value } = await iterator.next();
    if (done) break;
    queued.push(value);
  }
  assert.ok(queued.length <= 9, String(queued.length));
});

test("a listener that throws stops neither the others nor the connection", async (t) => {
  const thrown = [];
  const onUncaught = (error) => thrown.push(error.message);
  process.setUncaughtExceptionCaptureCallback(onUncaught);
  t.after(() => process.setUncaughtExceptionCaptureCallback(null));
  const { network, client, heard } = await liveWatch();
  client.watch("/notes/", {}, (notice) => {
    if (notice.kind === "change") throw new Error("mine");
  });
  network.last.say(changes(SCOPE, 6));
  network.last.say(changes(SCOPE, 7));
  await settle();
  assert.deepEqual(thrown, ["mine", "mine"]);
  assert.deepEqual(heard.cursors(), ["e:6", "e:7"]);
});

test("leaving the loop, an abort and close() each end the watch and let it go", async () => {
  const network = new Network();
  const client = network.connect();
  client.watch("/keep", {}, () => {});
  const abort = new AbortController();
  const aborted = client.watch("/a", { signal: abort.signal });
  const left = client.watch("/b");
  await Promise.all([aborted.open(), left.open()]);
  abort.abort();
  for await (const notice of left) if (notice.kind === "state") break;
  assert.deepEqual(
    network.last.of("unsubscribe").map(({ scope }) => scope),
    ["doc:/a", "doc:/b"],
  );
  for await (const _ of aborted) assert.fail("an aborted watch yields nothing");
  await assert.rejects(aborted.open(), { code: "closed" });
  client.close();
  assert.throws(() => client.watch("/a"), { code: "closed" });
  assert.equal(network.clock.pending, 0);
});

test("L62: another build is told once, however often the server says so", async () => {
  const builds = [];
  const { network } = await liveWatch({
    build: "1",
    onUpdateAvailable: (build) => builds.push(build),
  });
  for (const build of ["1", "2", "2"]) network.last.say({ t: "update-available", build });
  assert.deepEqual(builds, ["2"]);
  assert.equal(network.last.of("hello")[0].build, "1");
  assert.match(network.last.url, /\?build=1$/);
});

test("T65: a path prefix is kept, with and without slashes at its end", async () => {
  for (const url of ["http://h/base", "http://h/base/", "http://h/base//"]) {
    const { network } = await liveWatch({ url });
    assert.equal(network.last.url, "ws://h/base/v1/socket");
  }
  const { network } = await liveWatch({ url: "https://h" });
  assert.equal(network.last.url, "wss://h/v1/socket");
});

const jwt = (n) =>
  `h.${Buffer.from(JSON.stringify({ iat: 0, exp: 60, n })).toString("base64url")}.s`;

test("L56: a token is renewed before its end, ten minutes long, on one connection", async () => {
  let count = 0;
  const { network } = await liveWatch({ token: () => jwt(++count) });
  for (let second = 0; second < 600; second += 5) {
    await network.clock.advance(5_000);
    network.last.say({ t: "beat", cursors: {} });
  }
  assert.equal(network.sockets.length, 1);
  assert.equal(network.last.of("hello")[0].token, jwt(1));
  assert.equal(network.last.of("token").length, 12);
});

test("L56: a refused renewal is a typed end, not a loop", async () => {
  let token = jwt(1);
  const { network, heard } = await liveWatch({ token: () => token });
  token = undefined;
  for (let second = 0; second < 55; second += 5) {
    await network.clock.advance(5_000);
    network.last.say({ t: "beat", cursors: {} });
  }
  assert.equal(network.phases.at(-1), "failed:signed-out");
  assert.equal(heard.of("state").at(-1).error.code, "signed-out");
  await network.clock.advance(60_000);
  assert.equal(network.sockets.length, 1);
});

test("L56: a connection refused with an old token is tried once with a fresh one", async () => {
  let count = 0;
  const network = new Network();
  network.onFrame = (socket, frame) => {
    if (frame.t !== "hello") return false;
    queueMicrotask(() => socket.cut(1008));
    return true;
  };
  const client = network.connect({ token: () => `t${++count}` });
  const watch = client.watch("/notes/", {}, () => {});
  await network.clock.advance(60_000);
  assert.equal(network.sockets.length, 2);
  assert.equal(network.phases.at(-1), "failed:signed-out");
  network.onFrame = () => false;
  client.setToken("good");
  await settle();
  assert.equal(network.last.of("hello")[0].token, "good");
  assert.equal(watch.state(), "live");
});

test("a token source that throws is tried again with a delay", async () => {
  let failures = 3;
  const network = new Network();
  const client = network.connect({
    token: async () => {
      if (failures-- > 0) throw new Error("sign-in service away");
      return "t";
    },
  });
  client.watch("/notes/", {}, () => {});
  await network.clock.advance(10_000);
  assert.equal(client.phase, "live");
  assert.equal(network.errors.length, 3);
});

test("T56: options that cannot work are refused by name", () => {
  const network = new Network();
  for (const keepMs of [NaN, -1, Infinity]) {
    assert.throws(() => network.connect({ keepMs }), { code: "bad-request", message: /keepMs/ });
  }
  const client = network.connect();
  assert.throws(() => client.watch("/a", { minGapMs: NaN }), { message: /minGapMs/ });
  assert.throws(() => client.watch("/a", { queueLengthMax: 0 }), { message: /queueLengthMax/ });
  assert.throws(() => client.watch("/a", { since: "nonsense" }), { message: /cursor/ });
  assert.throws(() => client.watch([]), { message: /scope/ });
});

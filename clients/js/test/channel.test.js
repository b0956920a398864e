/** Channels: events, roster, publishing, and the read after a gap. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Network, recorder, settle } from "./support/network.js";

const SCOPE = "channel:room?id=42";

const events = (...list) => ({
  t: "events",
  scope: SCOPE,
  events: list.map((one) => (typeof one === "string" ? { event: one, data: null } : one)),
});
const kept = (seq) => ({ event: "message", data: seq, cursor: `h:${seq}` });
const gap = (cursor, more = {}) => ({ t: "gap", scope: SCOPE, reason: "lapped", cursor, ...more });
const presence = (kind, members, total) => ({ t: "presence", scope: SCOPE, kind, members, total });
const member = (id, at = 1) => ({ id, at });

async function liveChannel(options = {}, clientOptions = {}) {
  const network = new Network();
  network.heads.set(SCOPE, "h:5");
  const client = network.connect(clientOptions);
  const heard = recorder();
  const channel = client.channel("room", { id: 42 }, options, heard);
  await channel.open();
  return { network, client, channel, heard };
}

/** A catch-up read that a test lets succeed or fail. */
function reads() {
  const calls = [];
  const catchUp = (told) => new Promise((resolve, reject) => calls.push({ told, resolve, reject }));
  return { calls, catchUp };
}

test("events come as they are, with and without a position", async () => {
  const { network, channel, heard } = await liveChannel();
  network.last.say(events({ event: "typing", data: { who: 1 } }, kept(6)));
  network.last.say(events(kept(6), kept(7)));
  assert.deepEqual(
    heard.of("event").map(({ event, data }) => [event, data]),
    [
      ["typing", { who: 1 }],
      ["message", 6],
      ["message", 7],
    ],
  );
  assert.equal(channel.cursor, "h:7");
});

test("C2, C61: after a reconnect the channel is joined once, from its own position", async () => {
  const { network, channel } = await liveChannel();
  network.last.say(events(kept(6)));
  network.last.cut();
  await network.clock.advance(500);
  assert.equal(channel.state, "live");
  assert.deepEqual(network.last.of("subscribe"), [
    { t: "subscribe", id: "2", scope: SCOPE, since: "h:6" },
  ]);
});

test("C61: nobody is shown to have left while we are away; beats have no position", async () => {
  const { network, channel, heard } = await liveChannel();
  network.last.say(presence("sync", [member("a"), member("b")], 2));
  await network.clock.advance(15_000);
  assert.deepEqual(network.last.of("beat"), [{ t: "beat" }]);
  network.last.cut();
  assert.equal(channel.roster.total, 2);
  await network.clock.advance(500);
  network.last.say(presence("sync", [member("b"), member("c")], 2));
  assert.deepEqual([...channel.roster.members.keys()], ["b", "c"]);
  assert.deepEqual(
    heard.of("presence").map(({ change }) => change),
    ["sync", "sync"],
  );
});

test("the roster follows its deltas; a malformed one is refused whole", async () => {
  const { network, channel, heard } = await liveChannel();
  network.last.say(presence("sync", [member("a")], 1_500));
  network.last.say(presence("join", [member("b")]));
  network.last.say(presence("join", [member("c"), { id: 7 }]));
  network.last.say(presence("update", [{ ...member("b", 2), meta: "busy" }]));
  network.last.say(presence("leave", [member("a", 3)]));
  assert.deepEqual([...channel.roster.members.values()], [{ id: "b", at: 2, meta: "busy" }]);
  assert.equal(channel.roster.total, 1_500);
  assert.deepEqual(
    heard.of("presence").map(({ change }) => change),
    ["sync", "join", "update", "leave"],
  );
});

test("a second follower of a live channel is given the roster that is known", async () => {
  const { network, client } = await liveChannel();
  network.last.say(presence("sync", [member("a")], 9));
  const second = client.channel("room", { id: "42" }, {}, () => {});
  await settle();
  assert.equal(second.roster.total, 9);
  assert.equal(network.last.of("subscribe").length, 1);
});

test("publish resolves with the position and rejects with the server's reason", async () => {
  const { network, channel } = await liveChannel();
  network.onFrame = (socket, frame) => {
    if (frame.event === "message") socket.say({ t: "ack", id: frame.id, cursor: "h:6" });
    else
      socket.say({ t: "error", id: frame.id, scope: SCOPE, code: "not-permitted", message: "no" });
    return true;
  };
  assert.deepEqual(await channel.publish("message", { text: "hi" }), { cursor: "h:6" });
  assert.deepEqual(network.last.of("publish"), [
    { t: "publish", id: "2", channel: "room?id=42", event: "message", data: { text: "hi" } },
  ]);
  await assert.rejects(channel.publish("typing", null), { code: "not-permitted", scope: SCOPE });
  assert.equal(channel.state, "live");
});

test("an event whose answer is lost is never sent again, one that was not sent is", async () => {
  const { network, channel } = await liveChannel();
  network.onFrame = (_, frame) => frame.t === "publish";
  const sent = channel.publish("message", 1);
  network.last.cut();
  await assert.rejects(sent, { code: "connection-lost", retry: false });
  network.onFrame = (socket, frame) => {
    if (frame.t === "publish") socket.say({ t: "ack", id: frame.id });
    return frame.t === "publish";
  };
  const waiting = channel.publish("message", 2);
  await network.clock.advance(500);
  assert.deepEqual(await waiting, {});
  assert.deepEqual(
    network.last.of("publish").map(({ data }) => data),
    [2],
  );
});

test("an event that finds no connection in time is given up", async () => {
  const { network, channel } = await liveChannel();
  network.accepts = false;
  network.last.cut();
  const waiting = channel.publish("message", 1);
  const outcome = assert.rejects(waiting, { code: "timeout", retry: true });
  await network.clock.advance(10_000);
  await outcome;
});

test("C35: what is no JSON or too long is refused before it is sent", async () => {
  const { network, channel } = await liveChannel();
  const circle = {};
  circle.self = circle;
  for (const data of [circle, 1n, "x".repeat(256 * 1024)]) {
    await assert.rejects(channel.publish("message", data), { code: "bad-request" });
  }
  await assert.rejects(channel.publish("", 1), { code: "bad-request" });
  assert.equal(network.last.of("publish").length, 0);
  assert.equal(channel.state, "live");
});

test("P11: events without an answer are bounded", async () => {
  const { network, channel } = await liveChannel();
  network.onFrame = (_, frame) => frame.t === "publish";
  const all = Array.from({ length: 1_001 }, () =>
    channel.publish("message", 1).catch(({ code }) => code),
  );
  assert.equal(await all.at(-1), "queue-full");
  network.last.cut();
  assert.equal(await all[0], "connection-lost");
});

test("publish alone opens a connection, and lets it go after the answer", async () => {
  const network = new Network();
  network.onFrame = (socket, frame) => {
    if (frame.t === "publish") socket.say({ t: "ack", id: frame.id });
    return frame.t === "publish";
  };
  const client = network.connect();
  await client.channel("room", { id: 42 }).publish("message", 1);
  await settle();
  assert.equal(client.phase, "idle");
  assert.equal(network.clock.pending, 0);
});

test("C62: what comes during the catch-up read follows its result, once and in order", async () => {
  const { calls, catchUp } = reads();
  const { network, channel, heard } = await liveChannel({ catchUp });
  network.last.say(gap("h:20", { delay_ms: 400 }));
  assert.equal(channel.state, "catching-up");
  network.last.say(events(kept(21)));
  network.last.say(events(kept(21), kept(22)));
  await network.clock.advance(399);
  assert.equal(calls.length, 0);
  await network.clock.advance(1);
  assert.equal(calls[0].told.cursor, "h:20");
  assert.equal(heard.of("event").length, 0);
  calls[0].resolve("state");
  await settle();
  const kinds = heard.notices.slice(-5).map((notice) => notice.data ?? notice.state ?? notice.kind);
  assert.deepEqual(kinds, ["catching-up", "state", 21, 22, "live"]);
  assert.equal(channel.state, "live");
});

test("C62: a second gap during the read makes it read again; the last result counts", async () => {
  const { calls, catchUp } = reads();
  const { network, channel, heard } = await liveChannel({ catchUp });
  network.last.say(gap("h:20"));
  await network.clock.advance(0);
  network.last.say(gap("h:30"));
  calls[0].resolve("early");
  await network.clock.advance(0);
  assert.equal(calls.length, 2);
  assert.equal(calls[1].told.cursor, "h:30");
  network.last.say(events(kept(31)));
  calls[1].resolve("late");
  await settle();
  assert.deepEqual(
    heard.of("caught-up").map(({ data }) => data),
    ["late"],
  );
  assert.deepEqual(
    heard.of("event").map(({ data }) => data),
    [31],
  );
  assert.equal(channel.state, "live");
});

test("C62: a failed read is tried again with delay, and until then it is not live", async () => {
  const { calls, catchUp } = reads();
  const { network, channel, heard } = await liveChannel({ catchUp });
  network.last.say(gap("h:20"));
  await network.clock.advance(0);
  calls[0].reject(new Error("503"));
  await network.clock.advance(374);
  assert.deepEqual([calls.length, channel.state], [1, "catching-up"]);
  assert.equal(heard.of("state").at(-1).error.code, "catch-up-failed");
  await network.clock.advance(1);
  assert.equal(calls.length, 2);
  network.last.cut();
  assert.equal(channel.state, "stale");
  await network.clock.advance(500);
  assert.equal(channel.state, "catching-up");
  calls[1].resolve("state");
  await settle();
  assert.equal(channel.state, "live");
});

test("more events held than the bound are dropped for one more read", async () => {
  const { calls, catchUp } = reads();
  const { network, heard } = await liveChannel({ catchUp });
  network.last.say(gap("h:20"));
  await network.clock.advance(0);
  const many = Array.from({ length: 1_001 }, (_, at) => kept(21 + at));
  network.last.say(events(...many));
  calls[0].resolve("early");
  await network.clock.advance(0);
  network.last.say(events(kept(2_000)));
  calls[1].resolve("late");
  await settle();
  assert.deepEqual(
    heard.of("caught-up").map(({ data }) => data),
    ["late"],
  );
  assert.deepEqual(
    heard.of("event").map(({ data }) => data),
    [2_000],
  );
});

test("C1: a hint with a URL is read as JSON, with the token for the own server only", async () => {
  const asked = [];
  const fetch = async (url, init) => {
    asked.push([url.href, init.headers.Authorization]);
    return Response.json({ rows: 1 });
  };
  const { network, heard } = await liveChannel({}, { fetch, token: "t" });
  for (const url of ["/rooms/42", "https://elsewhere.test/rooms/42"]) {
    network.last.say(gap("h:5", { catch_up: url }));
    await network.clock.advance(0);
  }
  assert.deepEqual(asked, [
    ["http://server.test/rooms/42", "Bearer t"],
    ["https://elsewhere.test/rooms/42", undefined],
  ]);
  assert.deepEqual(
    heard.of("caught-up").map(({ data }) => data),
    [{ rows: 1 }, { rows: 1 }],
  );
});

test("without anything to read a gap is told and the events go on", async () => {
  const { network, channel, heard } = await liveChannel();
  network.last.say(gap("h:20"));
  network.last.say(events(kept(21)));
  assert.equal(channel.state, "live");
  assert.deepEqual(
    heard.notices.slice(-2).map(({ kind }) => kind),
    ["gap", "event"],
  );
});

test("closing during a catch-up read gives it up and leaves nothing", async () => {
  const { calls, catchUp } = reads();
  const { network, channel, client } = await liveChannel({ catchUp });
  network.last.say(gap("h:20", { delay_ms: 1_000 }));
  channel.close();
  await network.clock.advance(2_000);
  assert.equal(calls.length, 0);
  await assert.rejects(channel.open(), { code: "closed" });
  assert.equal(client.phase, "idle");
  assert.equal(network.clock.pending, 0);
});

test("a slow consumer of events that nobody keeps is told of its gap", async () => {
  const network = new Network();
  const client = network.connect();
  const channel = client.channel("room", { id: 42 }, { queueLengthMax: 4 });
  await channel.open();
  for (let at = 0; at < 10; at++) network.last.say(events({ event: "typing", data: at }));
  assert.equal(channel.state, "behind");
  const kinds = [];
  for await (const notice of channel) {
    kinds.push(notice.kind === "gap" ? notice.reason : notice.data);
    await settle();
    if (notice.kind === "gap") break;
  }
  assert.deepEqual(
    kinds.filter((kind) => kind !== undefined),
    [0, 1, 2, 3, "overflow"],
  );
});

test("L72: a refused channel says why, and rejects who waits for it", async () => {
  const network = new Network();
  network.onFrame = (socket, frame) => {
    if (frame.t !== "subscribe") return false;
    socket.say({ t: "error", id: frame.id, scope: SCOPE, code: "not-permitted", message: "no" });
    return true;
  };
  const channel = network.connect().channel("room", { id: 42 });
  await assert.rejects(channel.open(), { code: "not-permitted" });
  assert.equal(channel.state, "refused");
  network.onFrame = () => false;
  channel.retry();
  await settle();
  assert.equal(channel.state, "live");
});

/** The small parts: cursors, scopes, frames, event streams, rosters, delays, tokens. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { delayAfter, directedDelay } from "../dist/backoff.js";
import * as cursor from "../dist/cursor.js";
import { EventStreamParser, EVENT_LENGTH_MAX } from "../dist/event-stream.js";
import { decode } from "../dist/frames.js";
import { MEMBERS_MAX, Roster } from "../dist/roster.js";
import * as scope from "../dist/scope.js";
import { renewAfterMs } from "../dist/token.js";

const member = (id, at = 1, more = {}) => ({ id, at, ...more });

test("T1, T11: a cursor is read in both spellings, split at the last separator", () => {
  assert.equal(cursor.parse("e-1.x:7"), "e-1.x:7");
  assert.equal(cursor.parse("e-1-7"), "e-1:7");
  for (const bad of ["", "e", "e:", ":1", "e:01", "e:-1", "e 1:1", "e:1\n", 7, null]) {
    assert.equal(cursor.parse(bad), undefined, String(bad));
  }
});

test("cursors beyond 2^53 are compared exactly", () => {
  assert.equal(cursor.compare("e:18446744073709551614", "e:18446744073709551615"), "before");
  assert.equal(cursor.compare("e:10", "e:9"), "after");
  assert.equal(cursor.compare("e:1", "f:1"), "unrelated");
});

test("C63: parameters in any order name one scope, and texts that look alike stay apart", () => {
  assert.equal(scope.ofChannel("room", { b: 2, a: 1 }), scope.ofChannel("room", { a: 1, b: 2 }));
  assert.equal(scope.ofChannel("room", { id: "a&b=c" }), "channel:room?id=a%26b%3Dc");
  assert.equal(scope.canonical("channel:room?z=1&a=2"), "channel:room?a=2&z=1");
  assert.notEqual(
    scope.ofChannel("r", { a: "a", b: "b-c" }),
    scope.ofChannel("r", { a: "a-b", b: "c" }),
  );
});

test("C18, C35: bad scopes, names and parameters are refused before anything is sent", () => {
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`p${at}`, at]));
  assert.throws(() => scope.ofChannel("room", many), { code: "bad-request" });
  assert.throws(() => scope.ofChannel("room", { id: "\ud800" }), { code: "bad-request" });
  assert.throws(() => scope.ofChannel("ro om"), { code: "bad-request" });
  assert.throws(() => scope.canonical("nothing"), { code: "bad-request" });
  assert.throws(() => scope.canonical(`/${"a".repeat(5_000)}`), { code: "bad-request" });
});

test("scopes of one feed share a stream, others don't", () => {
  assert.equal(scope.feedOf("doc:/a/"), scope.feedOf("doc:/b"));
  assert.notEqual(scope.feedOf("doc://one/a"), scope.feedOf("doc://two/a"));
  assert.equal(scope.feedOf("doc://one/a"), scope.feedOf("doc://one/b"));
  assert.notEqual(scope.feedOf("channel:a"), scope.feedOf("channel:b"));
});

test("L73: unknown kinds are skipped, unknown fields dropped, and junk is no frame", () => {
  assert.equal(decode('{"t":"from-the-future"}'), undefined);
  for (const junk of ["", "{", "[]", "null", "7", '{"t":7}', '{"t":"constructor"}']) {
    assert.equal(decode(junk), undefined, junk);
  }
  const hello = decode('{"t":"hello","v":1,"heartbeat_ms":-5,"new":true}');
  assert.deepEqual(hello, { t: "hello", v: 1 });
});

test("a frame whose changes can't be read is the gap that it makes", () => {
  const frame = decode('{"t":"changes","scope":"doc:/a","cursor":"e:9","changes":[{"op":1}]}');
  assert.deepEqual(frame, { t: "gap", scope: "doc:/a", reason: "malformed", cursor: "e:9" });
});

test("C37: names such as __proto__ are plain data", () => {
  const text = '{"t":"events","scope":"s","events":[{"event":"__proto__","data":{"__proto__":1}}]}';
  const [event] = decode(text).events;
  assert.equal(event.event, "__proto__");
  assert.ok(Object.hasOwn(event.data, "__proto__"));
  const beat = decode('{"t":"beat","cursors":{"__proto__":"e:1"}}');
  assert.equal(beat.cursors.get("__proto__"), "e:1");
});

test("T3: lines end in LF, CR or CRLF, wherever the stream is cut", () => {
  const text =
    ":c\r\nevent: a\r\nid: e-1\r\ndata:  x\r\ndata: y\r\n\r\ndata\r\rretry: 20\ndata: z\n\n";
  const whole = new EventStreamParser().push(text);
  assert.deepEqual(whole, [
    { event: "a", data: " x\ny", id: "e-1" },
    { event: "message", data: "", id: "e-1" },
    { event: "message", data: "z", id: "e-1" },
  ]);
  for (let at = 0; at <= text.length; at++) {
    const parser = new EventStreamParser();
    assert.deepEqual([...parser.push(text.slice(0, at)), ...parser.push(text.slice(at))], whole);
    assert.equal(parser.retryMs, 20);
  }
});

test("T9: a block with an id only moves the position, and a block cut at the end does not", () => {
  const parser = new EventStreamParser();
  assert.deepEqual(parser.push("id: e-4\n\n"), [{ event: "message", data: undefined, id: "e-4" }]);
  assert.deepEqual(parser.push("id: e-5\ndata: half"), []);
});

test("T68: a retry that is not digits is ignored, and an id with NUL too", () => {
  const parser = new EventStreamParser();
  parser.push("retry: 1e3\nretry: -1\n\n");
  assert.equal(parser.retryMs, undefined);
  assert.deepEqual(parser.push("id: a\0b\ndata: x\n\n"), [{ event: "message", data: "x", id: "" }]);
});

test("an event without end is given up instead of kept", () => {
  const parser = new EventStreamParser();
  const piece = "x".repeat(EVENT_LENGTH_MAX / 2 + 1);
  parser.push(`data: ${piece}`);
  assert.throws(() => parser.push(piece), RangeError);
});

test("C42: a roster keeps the true total beside the members it was named", () => {
  const roster = new Roster();
  roster.apply({ kind: "sync", members: [member("a"), member("b")], total: 1_500 });
  roster.apply({ kind: "join", members: [member("c")] });
  assert.equal(roster.total, 1_501);
  roster.apply({ kind: "leave", members: [member("somebody-unnamed")] });
  roster.apply({ kind: "leave", members: [member("a")] });
  assert.equal(roster.total, 1_499);
  assert.deepEqual([...roster.members.keys()], ["b", "c"]);
});

test("C45: an older update is dropped, a tie does not flap", () => {
  const roster = new Roster();
  roster.apply({ kind: "sync", members: [member("a", 5, { meta: "now" })] });
  assert.deepEqual(
    roster.apply({ kind: "update", members: [member("a", 5, { meta: "tie" })] }),
    [],
  );
  assert.deepEqual(
    roster.apply({ kind: "update", members: [member("a", 4, { meta: "old" })] }),
    [],
  );
  assert.equal(roster.members.get("a").meta, "now");
});

test("C41: a join or a leave that comes twice counts once", () => {
  const roster = new Roster();
  roster.apply({ kind: "sync", members: [] });
  for (const kind of ["join", "join", "leave", "leave"]) {
    roster.apply({ kind, members: [member("a")] });
    assert.equal(roster.total, kind === "join" ? 1 : 0);
  }
});

test("malformed and outsized rosters are refused whole", () => {
  const bad = '{"t":"presence","scope":"s","kind":"join","members":[{"id":"a","at":1},{"id":7}]}';
  assert.equal(decode(bad), undefined);
  assert.equal(decode('{"t":"presence","scope":"s","kind":"dance","members":[]}'), undefined);
  const roster = new Roster();
  const members = Array.from({ length: MEMBERS_MAX + 1 }, (_, at) => member(`m${at}`));
  assert.equal(roster.apply({ kind: "sync", members }), undefined);
  assert.equal(roster.total, 0);
});

test("L68: delays double from 500 ms to 4 s, half fixed and half by chance", () => {
  const bounds = (failures) => [delayAfter(failures, () => 0), delayAfter(failures, () => 1)];
  assert.deepEqual([0, 1, 2, 3, 4, 100].map(bounds), [
    [250, 500],
    [500, 1_000],
    [1_000, 2_000],
    [2_000, 4_000],
    [2_000, 4_000],
    [2_000, 4_000],
  ]);
});

test("L70: a given delay is never shortened and gets a little spread", () => {
  assert.equal(
    directedDelay(1_000, () => 0),
    1_000,
  );
  assert.ok(directedDelay(1_000, () => 0.99) < 1_100);
});

test("L56: a token is renewed before its life ends, whatever the device's clock says", () => {
  const token = (claims) => `h.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.s`;
  assert.equal(renewAfterMs(token({ iat: 5_000, exp: 5_060 })), 50_000);
  assert.equal(renewAfterMs(token({ iat: 5, exp: 15 })), 5_000);
  assert.equal(renewAfterMs(token({ exp: 5_060 })), undefined);
  for (const opaque of ["", "secret", "a.b.c", "a.%%%.c"])
    assert.equal(renewAfterMs(opaque), undefined);
});

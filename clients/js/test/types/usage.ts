/** What a typed program may and may not write. It is compiled, never run. */

import { connect, TidingsError, type ChannelNotice, type Notice } from "../../dist/index.js";

const client = connect({ url: "https://app.test", token: async () => "t", build: "7" });

export async function follow(): Promise<void> {
  const watch = client.watch(["/notes/", "doc:/todo"], {
    since: { "/notes/": "e:5" },
    minGapMs: 250,
  });
  await watch.open();
  for await (const notice of watch) show(notice);
}

function show(notice: Notice): string {
  switch (notice.kind) {
    case "change":
      return `${notice.cursor} ${notice.op} ${notice.name} ${notice.version.toFixed()}`;
    case "gap":
      return notice.reason;
    case "position":
      return notice.cursor;
    case "state":
      return notice.error?.code ?? notice.state;
    case "event":
      return notice.event;
    case "presence":
      return String(notice.roster.total);
    default:
      return notice satisfies never;
  }
}

interface Room {
  messages: string[];
}

export async function talk(): Promise<void> {
  const room = client.channel<Room>(
    "room",
    { id: 42 },
    {
      catchUp: async (gap, signal) => {
        const answer = await fetch(`/rooms/42?gap=${gap.reason}`, { signal });
        return (await answer.json()) as Room;
      },
    },
  );
  const { cursor } = await room.publish("message", { text: "hi" });
  const text: string | undefined = cursor;
  for await (const notice of room) read(notice);
  void text;
}

function read(notice: ChannelNotice<Room>): void {
  if (notice.kind === "caught-up") void notice.data.messages.length;
  // @ts-expect-error A channel tells no changes of documents.
  if (notice.kind === "change") return;
}

// @ts-expect-error A parameter is text, a number or a boolean.
client.channel("room", { id: {} });
// @ts-expect-error A cursor is text.
client.watch("/notes/", { since: 5 });
// @ts-expect-error There is no such transport.
connect({ transport: "pigeon" });

export function isSignedOut(error: unknown): boolean {
  return error instanceof TidingsError && error.code === "signed-out" && !error.retry;
}

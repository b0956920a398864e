/** Follow changes and channels of a Tidings server. Start with {@link connect}. */

export { Channel } from "./channel.js";
export type { CaughtUpNotice, ChannelNotice, ChannelOptions } from "./channel.js";
export { Client, connect } from "./client.js";
export type { ConnectOptions } from "./client.js";
export type { Clock } from "./clock.js";
export type { Phase } from "./connection.js";
export type { Cursor } from "./cursor.js";
export { TidingsError } from "./errors.js";
export type { ClientErrorCode } from "./errors.js";
export type { Change, ChannelEvent, GapReason, Member, PresenceKind } from "./frames.js";
export type {
  ChangeNotice,
  EventNotice,
  GapNotice,
  Notice,
  PositionNotice,
  PresenceNotice,
  StateNotice,
  WatchState,
} from "./notice.js";
export type { Published } from "./publishes.js";
export { Roster } from "./roster.js";
export type { Params } from "./scope.js";
export type { TokenSource } from "./token.js";
export type { Preference, TransportKind } from "./transport.js";
export { Watch } from "./watch.js";
export type { WatchOptions } from "./watch.js";
export type { SocketConstructor, SocketLike } from "./ws.js";

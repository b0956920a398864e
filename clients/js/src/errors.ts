/** The one error type of the client; `code` says what a caller can do about it. */

/** Codes made by the client itself. A server's own codes come through unchanged. */
export type ClientErrorCode =
  | "bad-answer" // a catch-up URL did not answer with success
  | "bad-request" // the caller's argument is not usable; nothing was sent
  | "catch-up-failed" // a read after a gap failed and will be tried again
  | "closed" // the client, watch or channel was closed by the caller
  | "connection-lost" // no answer came; the server may or may not have acted
  | "dial-failed" // the token or the address could not be had; it is tried again
  | "protocol-version" // the server speaks another version of the sync protocol
  | "queue-full" // too much is waiting already; nothing was sent
  | "refused" // the server closed the connection for good without a reason of its own
  | "signed-out" // the token is no longer good and no other could be had
  | "timeout" // no connection or no answer came in time
  | "token-renewal-failed"; // the token function threw; it is called again

/** What is known of a failure besides its message. */
export interface ErrorDetails {
  /** What the reader can do about it. */
  fix?: string | undefined;
  /** More of this one request. */
  detail?: string | undefined;
  /** True if the same call may succeed later. */
  retry?: boolean | undefined;
  /** The scope it is about; absent if it is about the connection. */
  scope?: string | undefined;
  /** The error beneath. */
  cause?: unknown;
}

/** Everything this library rejects with or hands to a listener. */
export class TidingsError extends Error {
  /** Stable: compare with this, never with the message. */
  readonly code: ClientErrorCode | (string & {});
  /** What the reader can do about it. */
  readonly fix: string | undefined;
  /** More of this one request. */
  readonly detail: string | undefined;
  /** True if the same call may succeed later. */
  readonly retry: boolean;
  /** The scope it is about. */
  readonly scope: string | undefined;

  constructor(code: TidingsError["code"], message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "TidingsError";
    this.code = code;
    this.fix = details.fix;
    this.detail = details.detail;
    this.retry = details.retry ?? false;
    this.scope = details.scope;
  }
}

/**
 * Reports an error thrown by a listener of the application the way an uncaught one is reported,
 * so that one faulty listener neither goes unseen nor stops the others.
 */
export function reportListenerError(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

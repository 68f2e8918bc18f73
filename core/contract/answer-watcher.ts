/** An observer of answers on their way to the client. Types alone. */

/** Its methods must not throw or change what they get, and copy what they keep. */
export interface AnswerWatcher {
  head(status: number, headers: Readonly<Record<string, unknown>>): void;
  chunk(bytes: Uint8Array): void;
}

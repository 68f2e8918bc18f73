/** Who is shown an answer on its way out. Types alone. */

/** It throws nothing, changes nothing, and copies what it wants to keep. */
export interface AnswerWatcher {
  head(status: number, headers: Readonly<Record<string, unknown>>): void;
  part(bytes: Uint8Array): void;
}

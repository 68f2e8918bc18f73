/** How a loopback vendor reads and speaks one protocol. Types. */
import type { AgentRequest, Move } from './agent.ts';

/** Bodies as a client or vendor may word them: looked at, never trusted. */
// biome-ignore lint/suspicious/noExplicitAny: JSON of four protocols, whose shape is what is being tested
export type Json = any;

/** How one protocol is read and spoken. */
export interface Speech {
  /** Path behind the origin that a provider is configured with. */
  readonly base: string;
  /** Whether a request to this path asks for an answer; other known paths are counted tokens. */
  isRequest(path: string): boolean;
  /** Throws Refused where the real vendor would refuse. */
  read(body: Json, url: URL): AgentRequest;
  /** Frames of a stream. */
  stream(move: Move): string;
  whole(move: Move): Json;
  countTokens(path: string): Json | undefined;
}

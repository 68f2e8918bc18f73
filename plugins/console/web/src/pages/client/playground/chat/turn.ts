/** A conversation's messages, and the turn that is answered. */

export interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** As data URLs. */
  readonly images?: readonly string[];
  /** What the model thought before it, for people: it is not sent again. */
  readonly reasoning?: string;
  /** Tools that the gateway has called for it, for people as well. */
  readonly steps?: readonly Step[];
}
/** A call of a tool that the gateway has made. */
export interface Step {
  readonly name: string;
  /** JSON. */
  readonly input: string;
  readonly output: string;
  readonly failed: boolean;
}
/** Parameters with the vendor's defaults are absent. */
export interface Parameters {
  readonly temperature?: number;
  readonly maxTokens?: number;
}
export interface Turn {
  readonly text: string;
  readonly reasoning: string;
  readonly steps: readonly Step[];
  /** Calls by id that have their results later, where a protocol shows them so. */
  readonly called: Readonly<Record<string, Pick<Step, 'name' | 'input'>>>;
  /** The id of the call that is being written, in messages. */
  readonly calling: string | undefined;
  readonly firstByteMs: number | undefined;
  readonly totalMs: number | undefined;
  readonly tokensIn: number | undefined;
  readonly tokensOut: number | undefined;
  readonly requestId: string | undefined;
}
export const noTurn: Turn = {
  text: '',
  reasoning: '',
  steps: [],
  called: {},
  calling: undefined,
  firstByteMs: undefined,
  totalMs: undefined,
  tokensIn: undefined,
  tokensOut: undefined,
  requestId: undefined,
};

/** The answer broke off. */
export class TalkError extends Error {}

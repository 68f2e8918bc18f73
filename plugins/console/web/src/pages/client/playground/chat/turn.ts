/** A conversation's messages, and the turn that is answered. */

export interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** As data URLs. */
  readonly images?: readonly string[];
  /** What the model thought before it, for people: it is not sent again. */
  readonly reasoning?: string;
}
/** Parameters with the vendor's defaults are absent. */
export interface Parameters {
  readonly temperature?: number;
  readonly maxTokens?: number;
}
export interface Turn {
  readonly text: string;
  readonly reasoning: string;
  readonly firstByteMs: number | undefined;
  readonly totalMs: number | undefined;
  readonly tokensIn: number | undefined;
  readonly tokensOut: number | undefined;
  readonly requestId: string | undefined;
}
export const noTurn: Turn = {
  text: '',
  reasoning: '',
  firstByteMs: undefined,
  totalMs: undefined,
  tokensIn: undefined,
  tokensOut: undefined,
  requestId: undefined,
};

/** The answer broke off. */
export class TalkError extends Error {}

/** What a cell of the matrix is made of: asks, plays, and what either side sees, in words of no protocol. Types. */
import type { Received, Script } from '../helpers/vendor.ts';

export const protocolNames = ['chat', 'responses', 'messages', 'gemini'] as const;
export type ProtocolName = (typeof protocolNames)[number];

// ------------------------------------------------------------------------------------------------------ what is asked

/** A client's request. */
export interface ClientRequest {
  readonly system?: string;
  readonly turns: readonly RequestTurn[];
  readonly tools?: readonly RequestTool[];
  readonly maxOutputTokens?: number;
  readonly stop?: readonly string[];
  readonly schema?: object;
  /** Reason hard, and show it. */
  readonly reasons?: boolean;
  /** Two answers at once. */
  readonly twice?: boolean;
  /** Every hint that the protocol has words for: sampling, names, bias. */
  readonly hints?: boolean;
}

export type RequestTurn =
  | { readonly by: 'user'; readonly parts: readonly RequestPart[] }
  | { readonly by: 'assistant'; readonly text?: string; readonly calls?: readonly PlayCall[] }
  /** An earlier answer, as the client got it and gives it back: the protocol's own messages, items or content. */
  | { readonly by: 'echo'; readonly native: readonly unknown[] }
  | { readonly by: 'tools'; readonly results: readonly RequestResult[] };

export type RequestPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'image'; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'audio'; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'file'; readonly mediaType: string; readonly base64: string; readonly name: string };

export interface RequestTool {
  readonly name: string;
  readonly description: string;
  readonly schema: object;
}

export interface RequestResult {
  readonly callId: string;
  readonly name: string;
  readonly text: string;
  readonly image?: { readonly mediaType: string; readonly base64: string };
  readonly isError?: boolean;
}

// --------------------------------------------------------------------------------------------- what the vendor answers

export type Meaning = 'stop' | 'stop-sequence' | 'tool-calls' | 'length' | 'refusal';

/** A vendor's answer. */
export interface Play {
  readonly reasoning?: { readonly text: string; readonly signature: string };
  readonly text?: string;
  /** Said instead of an answer. */
  readonly refusal?: string;
  readonly calls?: readonly PlayCall[];
  readonly meaning: Meaning;
  /** The stop sequence that was hit. */
  readonly sequence?: string;
  /** The prompt itself was refused: nothing is said. */
  readonly isBlocked?: boolean;
  /** Text of a second answer. */
  readonly second?: string;
  readonly usage: PlayUsage;
}

export interface PlayCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** In tokens. `input` includes what was read from and written to a cache, `output` includes reasoning. */
export interface PlayUsage {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
}

/** What goes wrong at a vendor. */
export type Fault = 'too-long' | 'overloaded';

// ------------------------------------------------------------------------------------------------ what either side sees

/** A request as it reached the vendor. */
export interface Arrived {
  readonly model: string;
  readonly isStream: boolean;
  readonly system: string;
  readonly turns: readonly ArrivedTurn[];
  readonly tools: readonly RequestTool[];
  readonly maxOutputTokens: number | undefined;
  readonly stop: readonly string[] | undefined;
  readonly schema: object | undefined;
  readonly effort: string | undefined;
  readonly temperature: number | undefined;
  /** Answers asked for. */
  readonly choices: number | undefined;
}

export interface ArrivedTurn {
  readonly by: 'user' | 'assistant';
  readonly parts: readonly ArrivedPart[];
}

export type ArrivedPart =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'image' | 'file' | 'audio';
      readonly mediaType: string;
      readonly base64: string;
      readonly name?: string;
    }
  | { readonly kind: 'reasoning'; readonly text: string; readonly signature: string | undefined }
  | {
      readonly kind: 'call';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
      /** Where the protocol signs calls. */
      readonly signature?: string | undefined;
    }
  | {
      readonly kind: 'result';
      readonly callId: string;
      readonly text: string;
      readonly images: readonly { readonly mediaType: string; readonly base64: string }[];
      readonly isError: boolean;
    };

/** An answer as the client reads it. */
export interface Seen {
  readonly text: string;
  /** Text of a second answer. */
  readonly second: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly calls: readonly PlayCall[];
  /** What the protocol's word for the stop may mean; empty: it did not say. */
  readonly meanings: readonly Meaning[];
  readonly sequence: string | undefined;
  readonly usage: Partial<PlayUsage> | undefined;
  /** The answer in the form in which a client of this protocol puts it into its next request. */
  readonly echo: readonly unknown[];
  /** The stream reported an error. Without it the answer came to the protocol's end. */
  readonly error: SeenError | undefined;
}

export interface SeenError {
  readonly message: string;
  /** The protocol's word for the kind: `type`, `status`. */
  readonly type: string;
  readonly code: string | undefined;
  readonly field: string | undefined;
}

// -------------------------------------------------------------------------------------------------- what a protocol has

/** How a client of one protocol speaks and listens: written after the vendors' documents, apart from the gateway's code. */
export interface Client {
  readonly protocol: ProtocolName;
  word(request: ClientRequest, options: { readonly model: string; readonly isStream: boolean }): Wording;
  /** Reads a whole answer; throws on what no official client would accept. */
  readWhole(body: string): Seen;
  /** Reads a stream; throws on an illegal order of events. A stream that ends without end or error is illegal. */
  readStream(body: string): Seen;
  /** Reads the body of an answer with an error status. */
  readError(body: string): SeenError;
  /** What this protocol's clients cannot say or read. */
  readonly lacks: ReadonlySet<Lack>;
}

export interface Wording {
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** How a vendor of one protocol answers, and how it reads what it was sent. */
export interface VendorWords {
  readonly protocol: ProtocolName;
  whole(play: Play, model: string): string;
  /** The frames of a stream, each with its line ends; `contentAt` is the first one that a client would show. */
  stream(play: Play, model: string): readonly string[];
  /** An error before any answer. */
  fault(fault: Fault): Required<Pick<Script, 'status' | 'headers' | 'body'>>;
  /** The frames that tell of an overload inside a stream, after so many others. */
  faultFrames(after: number): readonly string[];
  /** Throws on what this vendor would refuse. */
  read(request: Received): Arrived;
  readonly lacks: ReadonlySet<Lack>;
}

export type Lack =
  | 'stop'
  | 'audio'
  | 'choices'
  | 'stop-sequence'
  | 'cache-write'
  | 'signature'
  | 'result-image'
  | 'result-error'
  | 'reasoning-history'
  | 'refusal'
  /** Titles of documents have no ending. */
  | 'file-ending';

/** What a client understood of an answer, in one shape for all clients, and how the answer's bytes are put before it. */

/** An answer as it left the gateway. */
export interface Answered {
  readonly body: Uint8Array | string;
  readonly contentType: string;
  /** Default: 200. */
  readonly status?: number;
  /** Tools the client has declared; then a call of any other is an error for clients that look. Absent: no one looks. */
  readonly tools?: readonly string[];
  /** How many bytes arrive at a time; default 700, so that frames and characters are cut. */
  readonly pieceBytes?: number;
}

export interface ToolUnderstood {
  readonly id: string;
  readonly name: string;
  /** The parsed arguments; the raw text of a custom tool's input. */
  readonly arguments: unknown;
}

/** Totals: `input` holds what was read from and written to a cache, `output` holds the reasoning. Absent: not reported. */
export interface UsageUnderstood {
  readonly input: number | undefined;
  readonly output: number | undefined;
  readonly cacheRead: number | undefined;
  readonly cacheWrite: number | undefined;
  readonly reasoning: number | undefined;
}

export interface CitationUnderstood {
  readonly url?: string | undefined;
  readonly title?: string | undefined;
  readonly quote?: string | undefined;
  readonly start?: number | undefined;
  readonly end?: number | undefined;
}

export type StopUnderstood = 'stop' | 'tool-calls' | 'length' | 'refusal' | 'pause' | 'other';

/** The first choice of an answer. */
export interface Understood {
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly tools: readonly ToolUnderstood[];
  readonly stop: StopUnderstood | undefined;
  /** The reason in the client's own words. */
  readonly stopWord: string | undefined;
  readonly usage: UsageUnderstood;
  /** Addresses or data URLs. */
  readonly images: readonly string[];
  readonly citations: readonly CitationUnderstood[];
}

/** The answer breaks a rule of its protocol that its clients rely on. */
class IllegalAnswer extends Error {}

/** Throws IllegalAnswer unless the rule is kept. */
export function rule(isKept: boolean, sentence: string): asserts isKept {
  if (!isKept) throw new IllegalAnswer(sentence);
}

/** An understanding that grows. */
export class Draft {
  text = '';
  reasoning = '';
  refusal = '';
  tools: ToolUnderstood[] = [];
  images: string[] = [];
  citations: CitationUnderstood[] = [];

  finish(stop: StopUnderstood | undefined, stopWord: string | undefined, usage: UsageUnderstood): Understood {
    const { text, reasoning, refusal, tools, images, citations } = this;
    return { text, reasoning, refusal, tools, stop, stopWord, usage, images, citations };
  }
}

export const noUsage: UsageUnderstood = {
  input: undefined,
  output: undefined,
  cacheRead: undefined,
  cacheWrite: undefined,
  reasoning: undefined,
};

/** Arguments of a call as an application reads them; throws when they are no JSON object. */
export function parsedArguments(text: string): unknown {
  const value: unknown = JSON.parse(text);
  rule(typeof value === 'object' && value !== null && !Array.isArray(value), `arguments are no object: ${text}`);
  return value;
}

/** A `fetch` that answers every request with these bytes, piece by piece. */
export function fetchOf(answer: Answered): typeof fetch {
  return async () =>
    new Response(inPieces(answer), {
      status: answer.status ?? 200,
      headers: { 'content-type': answer.contentType, 'x-request-id': 'req_oracle' },
    });
}

function inPieces({ body, pieceBytes = 700 }: Answered): ReadableStream<Uint8Array> {
  const bytes = Buffer.from(body);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + pieceBytes)));
      at += pieceBytes;
    },
  });
}

/** The `event:` and `data:` of each frame, as they stand in the bytes; frames without data are comments. */
export function rawFrames(answer: Answered): { event: string | undefined; data: string }[] {
  const text = Buffer.from(answer.body).toString();
  rule(/\r?\n\r?\n$/.test(text), 'the last frame is not ended by a blank line');
  return text
    .split(/\r?\n\r?\n/)
    .map((frame) => {
      const lines = frame.split(/\r?\n/);
      const of = (field: string) =>
        lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).trimStart());
      return { event: of('event')[0], data: of('data').join('\n') };
    })
    .filter(({ data }) => data !== '');
}

/** A batch and its lines, as the plugin's parts share them. */
import type { Money } from '../common/domain/money.ts';

export type BatchDialect = 'chat' | 'messages' | 'gemini';
export type Outcome = 'completed' | 'failed' | 'cancelled' | 'expired';
type LineResult = 'succeeded' | 'errored' | 'cancelled' | 'expired';

export interface InputError {
  readonly line: number | null;
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
}

export interface Counts {
  readonly succeeded: number;
  readonly errored: number;
  readonly cancelled: number;
  readonly expired: number;
}

/** Tokens of a batch, in OpenAI's members. */
export interface BatchUsage {
  readonly input_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number };
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
}

/** Times are wall-clock milliseconds. */
export interface Batch {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  /** Id of the request that ordered the batch; undefined: an earlier version stored it. */
  readonly requestId?: string | undefined;
  /** The order's span, as W3C trace context; null: none. */
  readonly trace?: string | null;
  readonly remoteAddress: string;
  readonly dialect: BatchDialect;
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly inputFile: string;
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly state: 'validating' | 'running' | 'finishing' | 'ended';
  readonly outcome: Outcome | undefined;
  readonly errors: readonly InputError[];
  readonly total: number;
  readonly counts: Counts;
  /** Usage of all lines, once the batch has ended. */
  readonly usage?: BatchUsage | undefined;
  /** Charges of the finished lines, in nano-USD; undefined: one of them is unknown. */
  readonly cost: Money | undefined;
  /** Set aside for lines that a vendor's batch makes, in nano-USD. */
  readonly held: Money;
  readonly outputFile: string | undefined;
  readonly errorFile: string | undefined;
  readonly outputLifetimeMs: number | undefined;
  readonly createdAt: number;
  readonly startedAt: number | undefined;
  readonly finishingAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly cancelAt: number | undefined;
  readonly expiresAt: number;
}

const modelPath = /^\/v1beta\/models\/([^/]+):(?:generateContent|embedContent)$/;

/** The model that the address of the lines names; undefined: their bodies name it. */
export function modelInEndpoint(endpoint: string): string | undefined {
  const name = modelPath.exec(endpoint)?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
}

/** A line of the input, by its position. */
export interface InputLine {
  readonly number: number;
  readonly customId: string;
  readonly firstByte: number;
  readonly bytes: number;
}

/** A line that a worker has taken. */
export interface TakenLine extends InputLine {
  /** When it was sent first, if it may have been; milliseconds ago. */
  readonly sentAgoMs: number | undefined;
}

export interface LineAnswer {
  readonly result: LineResult;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly answer: string | undefined;
  /** The account's charge; undefined: unknown. */
  readonly cost: Money | undefined;
}

export interface DoneLine extends Omit<LineAnswer, 'cost'> {
  readonly number: number;
  readonly customId: string;
}

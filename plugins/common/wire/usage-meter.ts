/** The interface of usage meters, which read the consumption of an answer as it passes. Types. */

import type { Headers } from '../../../core/contract/message.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { Services } from '../domain/prices.ts';
import type { UsageClass } from '../domain/usage.ts';
import type { Reading } from './counts.ts';
import type { CostOf } from './readings.ts';

/** Options of the meter of one answer. */
export interface UsageMeterOptions {
  /** The answer's headers: some vendors report usage in them. */
  readonly headers?: Readonly<Headers>;
  readonly withholdUsage: boolean;
  /** Called with each part of the answer that may hold ids of vendor objects. */
  readonly issued?: ((part: JsonObject) => void) | undefined;
  /** Called with the answer's object, and with the events that have finished items of it. */
  readonly items?: ((part: JsonObject) => void) | undefined;
  /** Decides between readings of contradictory counters where the vendor reports a cost; absent: no price is known. */
  readonly costOf?: CostOf;
  /** Whether the sold price names this class; absent: no price is known. */
  readonly isPriced?: (name: UsageClass) => boolean;
}

/**
 * The meaning of a frame for the relay. `pass`: ordinary. `last`: the protocol's end. `withhold`: not for this client.
 * `error`: an error, other frames may follow. `failed`: the protocol's end with an error. `overdue`: the answer is
 * complete, but this frame is not the protocol's end, which does not come.
 */
export type Verdict = 'pass' | 'last' | 'withhold' | 'error' | 'failed' | 'overdue';

/** Reads a passing answer, whole or in frames, and knows its usage at any time. Retains and changes no bytes. */
export interface UsageMeter {
  frame(raw: Buffer): Verdict;
  /** The same for a frame that was parsed already. */
  payload(json: JsonObject, event: string | undefined): Verdict;
  /**
   * A frame like the last one of `payload`, but for a text of the model that is longer by so many bytes of UTF-8: it passes.
   * false: it is to be given to `payload`, which decides.
   */
  again?(growth: number): boolean;
  whole(json: JsonObject): void;
  /** The answer may end here: its terminal event came, or everything that its protocol requires before a normal end. */
  readonly complete: boolean;
  /** The error in the stream or body: the vendor's payload. */
  readonly error: JsonObject | undefined;
  /** The error of the last frame is where clients of the protocol do not look for one: they get it in a frame of its own. */
  readonly hidesError?: boolean;
  readonly reading: Reading;
  /** The size of the answered text, in total and since the last usage report. */
  readonly text: TextSeen;
  readonly upstreamId: string | undefined;
  readonly finish: string | undefined;
  /** The services that the upstream reports as granted. */
  readonly services?: Services | undefined;
  /** Ids of the answer's items, where clients of the protocol may refer to them later. */
  readonly itemIds?: readonly string[];
}

/** Answered text by size. */
export interface TextSeen {
  readonly bytes: number;
  readonly frames: number;
  readonly bytesUnreported: number;
  readonly framesUnreported: number;
  /** Number of usage reports. */
  readonly reports: number;
}

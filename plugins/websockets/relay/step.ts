/** A part of a session with a charge of its own: one exchange through the chain, from its hold to its settlement. */

import { type DirectAnswer, defineContextKey, type UpstreamRequest } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import type { Sending } from '../../../core/contract/exchange.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { Call, SpendGuard, UsageReport } from '../../common/domain/calls.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import type { Usage } from '../../common/domain/usage.ts';
import type { Metered } from './dialect.ts';

/** Set before the chain: the step that the exchange is for; absent: a request over HTTP. */
export const relayStep = defineContextKey<RelayStep>('relay step');

export interface RelayStep {
  readonly call: Call;
  /** Makes the attempt. */
  send(request: UpstreamRequest, target: Target, sending: Sending): Promise<Answer>;
  readonly report: UsageReport;
  /** Set when money is held. */
  guard?: SpendGuard | undefined;
  /** Keeps the vendor's own message of an error in the session; set when the attempt begins. */
  failed?: ((error: JsonObject) => void) | undefined;
}

const nothing: Usage = { input: 0, output: 0 };

/** The step that one response is charged by. */
export class ResponseStep implements RelayStep {
  readonly call: Call;
  readonly report: UsageReport;
  guard: SpendGuard | undefined;
  failed: RelayStep['failed'];
  /** When the exchange has ended; set once it is answered. */
  ended: Promise<unknown> = Promise.resolve();
  #usage: Usage = nothing;
  #metered: Metered | undefined;
  #isEstimated = false;
  /** Counted tokens beyond the hold's estimate. */
  #seen = 0;
  #resolve!: (chunk: Uint8Array) => void;
  #reject!: (error: Error) => void;
  readonly #done: Promise<Uint8Array>;

  constructor(call: Call) {
    this.call = call;
    this.#done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#done.catch(() => {});
    const usage = () => this.#usage;
    const metered = () => this.#metered;
    const isEstimated = () => this.#isEstimated;
    this.report = {
      get usage() {
        return usage();
      },
      get estimated() {
        return isEstimated();
      },
      get terminal() {
        return metered() !== undefined;
      },
      get upstreamId() {
        return metered()?.upstreamId;
      },
      get finish() {
        return metered()?.finish;
      },
    };
  }

  async send(_request: UpstreamRequest, _target: Target, { signal, begin }: Sending): Promise<Answer> {
    await begin();
    signal.addEventListener('abort', () => this.#reject(brokenOff(signal.reason)), { once: true });
    const headers = { 'content-type': 'application/json' };
    return { status: 200, headers, body: once(this.#done), endsNow: () => true };
  }

  /** Counts tokens of messages; false: the money is not enough for them. */
  observe(tokens: number): boolean {
    this.#seen += tokens;
    return this.guard?.observe(Math.ceil(this.#seen)) !== false;
  }

  /** The response has ended: its reported usage is charged before `data` is sent to the client. */
  finish(metered: Metered, data: Uint8Array): Promise<unknown> {
    this.#metered = metered;
    this.#usage = metered.usage ?? this.estimate();
    this.#isEstimated = metered.usage === undefined;
    this.#resolve(data);
    return this.ended;
  }

  /** The session ends. `hasRun`: a response had begun and reported no usage. */
  stop(hasRun: boolean, isFailure: boolean): Promise<unknown> {
    if (this.#metered !== undefined) return this.ended;
    this.#usage = hasRun ? this.estimate() : nothing;
    this.#isEstimated = hasRun;
    if (isFailure) this.#reject(brokenOff(undefined));
    else this.#resolve(new Uint8Array());
    return this.ended;
  }

  estimate(): Usage {
    const { counted, inputTokens } = this.call;
    return { ...counted, input: (counted?.input ?? 0) + inputTokens, output: Math.ceil(this.#seen) };
  }
}

async function* once(chunk: Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield await chunk;
}

function brokenOff(cause: unknown): UpstreamError {
  return new UpstreamError('body', 'the session has ended', { cause });
}

/** Reads a refused answer to its end. */
export async function errorOf({ body, ended }: DirectAnswer): Promise<GatewayError | undefined> {
  for await (const _ of body);
  return (await ended).error;
}

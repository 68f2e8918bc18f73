/** The one attempt of a plugin that asks at the centre by itself (a tool, a search): journaled and charged as those of a route are. */
import { type Exchange, type UpstreamRequest, upstreamRequest } from '../../../../core/contract/contract.ts';
import { type Attempt, attempts, type UsageReport, usageReport } from '../../domain/calls.ts';
import type { Usage } from '../../domain/usage.ts';

/** The core sends nothing of it. */
const unsent: Omit<UpstreamRequest, 'credential'> = {
  ...{ url: '', method: 'POST', headers: {}, body: undefined, stream: false },
  ...{ connectTimeoutMs: 0, firstByteTimeoutMs: 0, idleTimeoutMs: 0 },
};

export class OwnAttempt {
  protected readonly exchange: Exchange;
  protected readonly attempt: Attempt;
  /** What is charged, as it is known when the exchange ends. */
  protected usage: Usage = {};
  #begun: Promise<void> | undefined;

  constructor(
    exchange: Exchange,
    named: Pick<Attempt, 'provider' | 'model' | 'credential' | 'protocol'>,
    startedAt: number,
  ) {
    this.exchange = exchange;
    this.attempt = {
      ...{ number: 1, ...named, startedAt, result: 'running' },
      ...{ status: undefined, durationMs: undefined, error: undefined },
    };
    exchange.set(attempts, [this.attempt]);
    const usage = () => this.usage;
    const report: UsageReport = {
      get usage() {
        return usage();
      },
      ...{ estimated: false, terminal: true, upstreamId: undefined, finish: undefined },
    };
    exchange.set(usageReport, report);
  }

  /** The centre leaves the request to it. */
  sendOver(stream: boolean, sendOver: NonNullable<UpstreamRequest['sendOver']>): void {
    this.exchange.set(upstreamRequest, { ...unsent, credential: this.attempt.credential, stream, sendOver });
  }

  /** Before anything is sent, once. What cannot be journaled is not sent. */
  begin(begin: () => Promise<void>): Promise<void> {
    this.#begun ??= begin().catch((error: unknown) => {
      this.attempt.result = 'not_sent';
      throw error;
    });
    return this.#begun;
  }
}

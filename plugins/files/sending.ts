/** Files that are being sent: places in all, a share of them by account and by network, and a floor under a client's pace. */
import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Clock } from '../../core/contract/host-tools.ts';
import { networkOf } from '../common/kit/network-of.ts';

export interface SendingLimits {
  /** Limit of concurrent downloads. */
  readonly answers: number;
  /** Concurrent downloads of one account or network; absent: a quarter of all. */
  readonly answersPerClient?: number | undefined;
  /** Bytes a second that a client takes at least. */
  readonly slowest: number;
}

/** A client is judged by its pace after this time alone. */
const graceMs = 30_000;

export class Sending {
  readonly #limits: SendingLimits;
  readonly #clock: Clock;
  readonly #byClient = new Map<string, number>();
  #all = 0;

  constructor(limits: SendingLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Each answer holds a file or a connection while its client reads. `owner`: the file's account, which its signed address counts for. */
  admit(exchange: Exchange, owner: string): void {
    const { answers, answersPerClient = Math.max(1, Math.floor(answers / 4)) } = this.#limits;
    const network = `network ${networkOf(exchange.request.remoteAddress)}`;
    const clients = [network, `account ${owner}`];
    if (this.#all >= answers)
      throw new GatewayError('overloaded', 'Too many files are being sent at the moment.', { retryAfterMs: 5_000 });
    if (clients.some((client) => (this.#byClient.get(client) ?? 0) >= answersPerClient))
      throw new GatewayError('rate_limited', 'Too many files are being sent to you at the moment.', {
        code: 'files',
        retryAfterMs: 5_000,
      });
    this.#all += 1;
    for (const client of clients) this.#byClient.set(client, (this.#byClient.get(client) ?? 0) + 1);
    exchange.defer(() => {
      this.#all -= 1;
      for (const client of clients) {
        const left = this.#byClient.get(client)! - 1;
        if (left > 0) this.#byClient.set(client, left);
        else this.#byClient.delete(client);
      }
    });
  }

  /** The body, broken off where its client takes it too slowly. */
  async *paced(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    const begunAt = this.#clock.monotonic();
    let taken = 0;
    for await (const chunk of body) {
      const tookMs = this.#clock.monotonic() - begunAt;
      if (tookMs > graceMs && taken * 1_000 < this.#limits.slowest * tookMs)
        throw new GatewayError('request_timeout', 'The file is read too slowly.');
      yield chunk;
      taken += chunk.length;
    }
  }
}

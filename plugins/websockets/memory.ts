/** Memory that connections take: of all together, and of one account's. */
import { GatewayError } from '../../core/contract/errors.ts';
import type { WebSocketsConfig } from './config.ts';

export type MemoryLimits = Pick<WebSocketsConfig, 'memory' | 'account_memory' | 'message'>;

export class Memory {
  #limits: MemoryLimits;
  #taken = 0;
  readonly #byOwner = new Map<string, number>();

  constructor(limits: MemoryLimits) {
    this.#limits = limits;
  }

  /** Limits for bytes from now on. */
  applyConfig(limits: MemoryLimits): void {
    this.#limits = limits;
  }

  /** Takes so many bytes, or gives them back where negative; where there is no room, nothing is taken, and the reason is returned. */
  take(owner: string, bytes: number): GatewayError | undefined {
    const taken = (this.#byOwner.get(owner) ?? 0) + bytes;
    if (bytes > 0) {
      const { memory, message, account_memory: own = Math.max(memory / 4, 2 * message) } = this.#limits;
      if (taken > own) return tooMuchOf();
      if (this.#taken + bytes > memory) return tooMuch();
    }
    this.#taken += bytes;
    if (taken > 0) this.#byOwner.set(owner, taken);
    else this.#byOwner.delete(owner);
    return undefined;
  }
}

const tooMuchOf = () =>
  new GatewayError('rate_limited', 'The WebSockets of this account have too many large messages under way.', {
    code: 'message_bytes',
    retryAfterMs: 1_000,
  });
const tooMuch = () =>
  new GatewayError('overloaded', 'The gateway keeps too many large messages at the moment.', { retryAfterMs: 1_000 });

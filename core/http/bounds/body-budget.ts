/** Limits the memory of request bodies, in total and per account. */
import { GatewayError } from '../../contract/errors.ts';

export interface BudgetLimits {
  /** Bytes of all bodies in memory. */
  readonly maxBytesInFlight: number;
  /** Bytes of one account's bodies. */
  readonly maxBytesPerAccount: number;
}

/** Bytes of one account's bodies. */
export interface Share {
  bytes: number;
}

/** Bytes of one exchange's body. */
export interface Holder {
  heldBytes: number;
  share: Share | undefined;
}

/** Idle shares are kept for reuse; beyond this number they are dropped. */
const maxIdleShares = 10_000;

export class BodyBudget {
  #limits: BudgetLimits;
  #held = 0;
  readonly #shares = new Map<string, Share>();

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
  }

  /** Limits for bytes from now on. */
  applyConfig(limits: BudgetLimits): void {
    this.#limits = limits;
  }

  get heldBytes(): number {
    return this.#held;
  }

  /** The share of an account, or of the address of a client without one. */
  shareOf(owner: string): Share {
    let share = this.#shares.get(owner);
    if (share === undefined) {
      if (this.#shares.size >= maxIdleShares) this.#dropIdle();
      share = { bytes: 0 };
      this.#shares.set(owner, share);
    }
    return share;
  }

  /** Adds bytes to what the body holds. Throws `overloaded` (all bodies) or `rate_limited` (the account's). */
  take(holder: Holder, bytes: number): void {
    const { maxBytesInFlight, maxBytesPerAccount } = this.#limits;
    if (this.#held + bytes > maxBytesInFlight) {
      throw new GatewayError('overloaded', 'The gateway holds too many large requests at the moment.', {
        retryAfterMs: 1_000,
      });
    }
    const { share } = holder;
    if (share !== undefined) {
      if (share.bytes + bytes > maxBytesPerAccount) {
        throw new GatewayError('rate_limited', 'Too many large requests of this account run at the same time.', {
          code: 'request_bytes',
          retryAfterMs: 1_000,
        });
      }
      share.bytes += bytes;
    }
    this.#held += bytes;
    holder.heldBytes += bytes;
  }

  /** Releases this many bytes of the body. */
  release(holder: Holder, bytes: number): void {
    this.#held -= bytes;
    holder.heldBytes -= bytes;
    if (holder.share !== undefined) holder.share.bytes -= bytes;
  }

  #dropIdle(): void {
    for (const [owner, { bytes }] of this.#shares) if (bytes === 0) this.#shares.delete(owner);
  }
}

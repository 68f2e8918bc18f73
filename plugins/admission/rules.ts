/** Asks rules for reservations of a call, all or none, and ends each of them once. */
import { GatewayError, rethrowOfRule } from '../../core/contract/errors.ts';
import type { Log as FullLog } from '../../core/contract/host-tools.ts';
import { within } from '../common/kit/waits/within.ts';
import type { AdmissionEnd, AdmissionRule, AdmittedCall, CallToAdmit } from '../common/wire/admission-rules.ts';

export type Log = Pick<FullLog, 'error'>;

/** The reservation of a rule. */
export interface Held {
  readonly rule: AdmissionRule;
  readonly reservation: string;
}

export interface RuleSettings {
  readonly within: number;
  readonly broken: 'refuse' | 'allow';
}

export class Rules {
  readonly #settings: () => RuleSettings;

  constructor(settings: () => RuleSettings) {
    this.#settings = settings;
  }

  /** In the order of the rules. A refusal releases what the earlier ones have reserved, and is thrown. */
  async reserve(rules: readonly AdmissionRule[], call: CallToAdmit, log: Log): Promise<Held[]> {
    const held: Held[] = [];
    try {
      for (const rule of rules) {
        const reservation = await this.#ask(rule, call, log);
        if (reservation !== undefined) held.push({ rule, reservation });
      }
    } catch (error) {
      await this.end(held, call, undefined, log);
      throw error;
    }
    return held;
  }

  /** Settles, or without an end releases, the last first. */
  async end(held: readonly Held[], call: AdmittedCall, end: AdmissionEnd | undefined, log: Log): Promise<void> {
    for (const one of held.toReversed()) await this.#end(one, call, end, log);
  }

  async #ask(rule: AdmissionRule, call: CallToAdmit, log: Log): Promise<string | undefined> {
    try {
      const requested = rule.reserve(call);
      if (!(requested instanceof Promise)) return textOf(requested);
      return textOf(await this.#bounded(requested, (late) => this.#releaseLate(rule, late, call, log)));
    } catch (error) {
      if (error instanceof GatewayError) rethrowOfRule(error);
      log.error({ error, rule: rule.name }, 'an admission rule failed to reserve');
      if (this.#settings().broken === 'allow') return undefined;
      throw new GatewayError('overloaded', 'This call cannot be admitted at the moment.', {
        code: 'admission_unavailable',
        retryAfterMs: 1_000,
        cause: error,
      });
    }
  }

  async #end({ rule, reservation }: Held, call: AdmittedCall, end: AdmissionEnd | undefined, log: Log): Promise<void> {
    try {
      const ending = end === undefined ? rule.release(reservation, call) : rule.settle(reservation, call, end);
      if (ending instanceof Promise) await this.#bounded(ending, (late) => late.catch((error) => failed(error)));
    } catch (error) {
      failed(error);
    }
    function failed(error: unknown): void {
      log.error({ error, rule: rule.name }, `an admission rule failed to ${end === undefined ? 'release' : 'settle'}`);
    }
  }

  /** A promise that takes too long is given to `late`. */
  async #bounded<T>(awaited: Promise<T>, late: (awaited: Promise<T>) => Promise<unknown>): Promise<T> {
    const { within: longestMs } = this.#settings();
    let isLate = false;
    try {
      return await within(longestMs, awaited, () => {
        isLate = true;
        return new Error(`it took longer than ${longestMs} ms`);
      });
    } finally {
      if (isLate) void late(awaited);
    }
  }

  /** A late reservation belongs to a call that was decided without it. */
  async #releaseLate(rule: AdmissionRule, late: Promise<unknown>, call: CallToAdmit, log: Log): Promise<void> {
    const reservation = await late.then(textOf).catch(() => undefined);
    if (reservation !== undefined) await this.#end({ rule, reservation }, call, undefined, log);
  }
}

function textOf(reservation: unknown): string | undefined {
  if (reservation === undefined || typeof reservation === 'string') return reservation;
  throw new Error('it returned no text');
}

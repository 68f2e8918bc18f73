/** Admission rules: the extension point of plugins that reserve something for a call before it is made and settle it at its end. */
import {
  type ContextKey,
  defineContextKey,
  defineExtensionPoint,
  defineService,
} from '../../../core/contract/contract.ts';
import type { Orm } from '../domain/database.ts';
import type { Money } from '../domain/money.ts';
import type { Usage } from '../domain/usage.ts';

/** A call that is charged, as rules know it from its admission to its end. */
export interface AdmittedCall {
  /** The request's id. */
  readonly id: string;
  /** Wall-clock milliseconds of its admission. */
  readonly at: number;
  readonly caller: {
    readonly accountId: string;
    readonly keyId: string;
    readonly project?: string;
    /** By name; absent: none. */
    readonly tags?: Readonly<Record<string, string>>;
  };
  /** `chat`, `embeddings`, `images`, `realtime` …, as in settings. */
  readonly operation: string;
  /** In the catalogue. At the end of a call that another model served: that one. */
  readonly model: string;
  /** Billing's hold at the call's beginning; a long answer may come to cost more. 0 without billing. */
  readonly amount: Money;
}

/** A call that asks for admission. */
export interface CallToAdmit extends AdmittedCall {
  /** The value of a context key, as of an exchange. */
  find<T>(key: ContextKey<T>): T | undefined;
}

/** The outcome of a call. */
export interface AdmissionEnd {
  /** `answered`: with an answer that is no error. `client_left`: its client did not wait for the end. `failed`: all else. */
  readonly outcome: 'answered' | 'client_left' | 'failed';
  /** The account's charge. 0 without billing. */
  readonly cost: Money;
  /** The charged usage or, without billing, the reported one; undefined: none. */
  readonly usage: Usage | undefined;
}

/** A rule of a plugin: reserves for calls, and settles or releases what it has reserved. */
export interface AdmissionRule {
  readonly name: string;
  /**
   * Its reservations outlive the process: each is written to the database before the call is made, so that those of a process that
   * was killed are settled or released at its next start. Absent: they are gone with the process.
   */
  readonly durable?: true;
  /**
   * Called once for each call that is charged, before money is held and before any attempt. Returns what it has reserved, as a text
   * of its own that is given back to it; undefined: nothing, and it is not called again for this call. Throws a GatewayError to refuse.
   */
  reserve(call: CallToAdmit): string | undefined | Promise<string | undefined>;
  /** Called once for each reservation of a call that was made, at its end: of tasks and lines of batches long after the answer. */
  settle(reservation: string, call: AdmittedCall, end: AdmissionEnd): void | Promise<void>;
  /** Called instead, once, where the call was refused after all, or has reached no vendor. */
  release(reservation: string, call: AdmittedCall): void | Promise<void>;
}

/** The point at which plugins add their rules. */
export const admission = defineExtensionPoint<AdmissionRule>('admission');

/** Reservations of an exchange that may become those of an order. */
export interface Admitted {
  /** In the transaction that places the order: they end with it, not with the exchange. */
  keep(orm: Orm): Promise<void>;
  /** That transaction is committed. */
  kept(): void;
}

/** Set by `admission` where something is reserved; used by the plugin that sets money aside for orders. */
export const admitted = defineContextKey<Admitted>('admitted');

/** How an order has ended; `sent`: it has reached a vendor. */
export interface OrderEnd extends AdmissionEnd {
  readonly sent: boolean;
  /** That served it; absent: the one that was admitted. */
  readonly model?: string;
}

/** Reservations of orders that outlive their exchange. Provided by `admission`. */
export interface AdmittedOrders {
  /** Notes the end, in the transaction that ends the order. */
  end(orm: Orm, requestId: string, end: OrderEnd): Promise<void>;
  /** Settles or releases its reservations, once that is committed. */
  settle(requestId: string): Promise<void>;
}

export const admittedOrders = defineService<AdmittedOrders>('admitted orders');

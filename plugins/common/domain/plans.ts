/** Plans: their limits and grants, and what accounts buy or redeem. */
import { defineContextKey, defineService, type Endpoint } from '../../../core/contract/contract.ts';
import type { Money, Ratio } from './money.ts';

/** Enforces the limits of plans and keys; absent: no limit is enforced. */
export interface RateLimits {
  /** Whether calls of this endpoint are limited. */
  covers(endpoint: Endpoint): boolean;
}

export const rateLimits = defineService<RateLimits>('rate limits');

/** Limits of the caller's plan. Absent member: no such limit. */
export interface PlanTerms {
  readonly name: string;
  readonly limits: Limits;
  /** Models the plan allows; undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
  /** Regions in which its calls may be processed; absent: anywhere. */
  readonly regions?: ReadonlySet<string> | undefined;
  /** Price ratio of the plan; undefined: 1. */
  readonly multiplier: Ratio | undefined;
  /** Money that the plan brings for each period; it expires with the period. */
  readonly grant?: PlanGrant | undefined;
  /** How much of that money may be spent within each window. */
  readonly windows?: { readonly [K in WindowName]?: Money | undefined } | undefined;
}

interface PlanGrant {
  readonly amount: Money;
  readonly every: 'day' | 'week' | 'month';
}

export type WindowName = '5h' | 'day' | 'week' | 'month';

export interface Limits {
  readonly rpm?: number;
  readonly rpd?: number;
  readonly tpm?: number;
  readonly concurrency?: number;
}

/** The terms of the caller's plan at this time. Set by `plans`. */
export const plan = defineContextKey<PlanTerms>('plan');

/** A plan as it is sold. */
export interface PlanOffer extends PlanTerms {
  readonly price: Money;
  /** Milliseconds; undefined: for one period of its grant, or without end. */
  readonly durationMs: number | undefined;
  /** Bought again at its end, if the balance covers it. */
  readonly renew: boolean;
}

export interface Plans {
  /** Name of the plan of accounts that chose none. */
  readonly default: string;
  /** Terms by name; the default plan's when the name is unknown. */
  terms(name: string): PlanTerms;
  has(name: string): boolean;
  /** Every plan on offer. */
  list(): readonly PlanTerms[];
  /** Price of the plan of this name; undefined when there is none. */
  offer(name: string): PlanOffer | undefined;
}

export const plans = defineService<Plans>('plans');

/** Purchases and redemptions of accounts. */
export interface Shop {
  /** Buys a plan from the balance, once per `reference`; 402 when the money that does not expire does not cover it. */
  buy(accountId: string, plan: string, reference: string): Promise<Purchase>;
  /** Redeems a code: money, a plan, or days of a plan. `not_found` for an unknown one, `conflict` for one that is used up. */
  redeem(accountId: string, code: string): Promise<Redemption>;
}

export interface Purchase {
  readonly plan: string;
  readonly price: Money;
  readonly endsAt: number | undefined;
  readonly balance: Money;
}

export interface Redemption {
  readonly amount: Money | undefined;
  readonly plan: string | undefined;
  readonly endsAt: number | undefined;
  readonly balance: Money;
}

export const shop = defineService<Shop>('shop');

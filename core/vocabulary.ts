/** The facts and services that two or more plugins share. Types alone: no behaviour, no I/O, no vendor. */
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { type DrainBounds, defineFact, defineService, type Endpoint } from './contract.ts';
import type { GatewayError } from './errors.ts';
import type { Money, Ratio } from './money.ts';
import type { Limits } from './pool.ts';
import type { PriceBook, Services } from './prices.ts';
import type { Traits } from './traits.ts';
import type { Choosing } from './upstreams.ts';
import type { Usage } from './usage.ts';

export * from './counters.ts';
export * from './kept-files.ts';
export * from './pool.ts';
export * from './story.ts';
export * from './upstreams.ts';

// ---------------------------------------------------------------------------------------------------------------- facts

/** What the client asks for, as far as the gateway must know. Stated by the endpoint when it is opened. */
export interface Call {
  /** `chat`, `responses`, `messages`, `gemini`. */
  readonly protocol: string;
  /** The model as the client named it. */
  readonly model: string;
  readonly stream: boolean;
  /** false for calls that run no inference (counting tokens): they are limited but neither held nor charged. */
  readonly billable: boolean;
  /** Upper-biased estimate of the prompt, in tokens, made from its size. */
  readonly inputTokens: number;
  /** The client's own bound on the answer, in tokens, if it set one. */
  readonly maxOutputTokens: number | undefined;
  /** How many answers are asked for (`n`, `candidateCount`); at least 1. */
  readonly choices: number;
  /** What kind of model the endpoint takes; absent: chat. */
  readonly kind?: Model['kind'];
  /** What it asks for beyond the vendor's standard service, by kind: `{ tier: 'priority' }`; absent: nothing. */
  readonly services?: Services;
  /** Calls of the vendor's own tools that it allows, or that are usual where it sets no bound; absent: it offers no tool. */
  readonly toolCalls?: number;
  /** Images that are made at most; absent: none. */
  readonly images?: number;
  /** Seconds of video that are made at most; absent: none. */
  readonly seconds?: number;
  /** Size, quality and resolution of what is made, in lower case; absent: the vendor chooses. */
  readonly media?: readonly string[];
}
export const call = defineFact<Call>('call');

/** Who calls. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string;
  /** Name of the account's plan. */
  readonly plan: string;
  /** When that plan ends and the default plan takes its place, in wall-clock milliseconds; absent: it does not. */
  readonly planEndsAt?: number | undefined;
  /** Models this key may call; undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
  /** Price ratio of the account, on top of plan and model; absent: 1. */
  readonly multiplier?: Ratio;
  /** Limits of the key alone, beside those of the plan; absent: none. */
  readonly keyLimits?: Limits;
  /** What the key may spend; absent: as much as the account has. */
  readonly cap?: KeyCap;
}
/** What a key may spend in each calendar period (UTC); `ever`: altogether. */
export interface KeyCap {
  readonly amount: Money;
  readonly every: 'day' | 'week' | 'month' | 'ever';
}
export const caller = defineFact<Caller>('caller');

/** One way to serve a model. */
export interface ModelTarget {
  readonly provider: string;
  /** The name the provider knows the model by. */
  readonly model: string;
  /** Share of the first tries among the targets that have one; 0: no share, tried in the listed order. */
  readonly weight: number;
  /** What is particular of the model at this provider; over the model's own traits. */
  readonly traits?: Traits;
  /** What the operator pays there; absent: the model's. */
  readonly cost?: PriceBook;
}

export interface Model {
  readonly id: string;
  readonly ownedBy: string;
  readonly created: number;
  readonly displayName: string;
  /** `chat`, `image` or `video`. */
  readonly kind: 'chat' | 'image' | 'video';
  readonly targets: readonly ModelTarget[];
  /** Tokens; undefined: unknown. */
  readonly contextTokens: number | undefined;
  readonly maxOutputTokens: number | undefined;
  /** undefined: not priced, so not sold; nor is it at a time at which no version holds. */
  readonly prices: PriceBook | undefined;
  /** What the operator pays; absent: not known. */
  readonly cost?: PriceBook;
  /** Price ratio of the model, on top of plan and account; absent: 1. */
  readonly multiplier?: Ratio;
  /** How it wants to be asked when a request is translated for it. */
  readonly traits?: Traits;
  /** How its first target is chosen, where it is not as the route says. */
  readonly choose?: Choosing;
  /** How long its target may be silent before another is asked beside it; 0: none is; absent: as the route says. */
  readonly hedgeAfterMs?: number;
}
/** The catalogue entry of `call.model`. */
export const model = defineFact<Model>('model');

/** Ratio on the official price, from the multiplier plugin or the plan. Absent: 1. */
export const priceRatio = defineFact<Ratio>('price ratio');

/** Where this attempt goes. Stated by `route` before each `next()`. */
export interface Target {
  readonly provider: string;
  /** The upstream's name of the model. */
  readonly model: string;
  /** Protocol that will be spoken with the upstream. */
  readonly protocol: string;
  /** What a client of that vendor would be configured with, without a trailing slash. */
  readonly baseUrl: string;
  /** The upstream key; prints as `***`. */
  readonly key: Secret;
  /** Names the key without telling it: `openai#1`. */
  readonly credential: string;
  readonly upstream: UpstreamTraits;
  /** The provider's dialect of this protocol and the model's traits, merged. */
  readonly traits: Traits;
}
export const target = defineFact<Target>('target');

/**
 * The request continues what one upstream keeps, so it can go nowhere else: to this provider, by this key, in this
 * protocol. Stated when the endpoint is opened; `route` obeys.
 */
export interface Pinned {
  readonly provider: string;
  readonly credential: string;
  readonly protocol: string;
}
export const pinned = defineFact<Pinned>('pinned');

/** What is declared of a provider, apart from keys and addresses. */
export interface UpstreamTraits {
  /** Header and value template that carry the key; `{key}` is replaced. By protocol default when absent. */
  readonly auth: { readonly header: string; readonly value: string } | undefined;
  /** Headers sent with each request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Top-level request members that the vendor does not take, by protocol: removed. */
  readonly dropFields: Readonly<Record<string, readonly string[]>>;
  /** true: ask for usage in chat streams by `stream_options.include_usage`. */
  readonly streamUsageOption: boolean;
  readonly connectTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** Its answers are read on when a client leaves, within these bounds; absent: it is told to stop. */
  readonly drain?: DrainBounds | undefined;
}

/** A value that never shows itself: string, JSON and inspect give `***`. */
export interface Secret {
  reveal(): string;
}

/** One upstream attempt; rows are made of it (M5 of the money rules). `route` states the list before its first attempt. */
export interface Attempt {
  readonly number: number;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string;
  readonly startedAt: number;
  /** `running` until known. `not_sent`: nothing left. `refused`: an error status without usage. `unknown`: may have run. `answered`: a 2xx head came. */
  result: 'running' | 'not_sent' | 'refused' | 'unknown' | 'answered';
  status: number | undefined;
  durationMs: number | undefined;
  error: string | undefined;
  /** What it was seen to consume although it failed; absent: nothing was reported and nothing seen. */
  consumed?: { readonly usage: Usage; readonly estimated: boolean };
  /** It was begun beside another one that was silent. */
  readonly hedge?: true;
  /** Another one that ran beside it answered first; it was ended. */
  lost?: true;
}
/** In the order in which they ended: the one that the client is told of, and may pay for, is the last. */
export const attempts = defineFact<Attempt[]>('attempts');

/** What an answer consumed. Stated by the protocol's tap, on complete, cut and abandoned answers alike. */
export interface UsageReport {
  readonly usage: Usage;
  /** true: the vendor reported nothing (or not all), so sizes were used; upper-biased. */
  readonly estimated: boolean;
  /** The protocol's own terminal event (or a whole body) was seen. */
  readonly terminal: boolean;
  /** The upstream's id of the answer, if it gave one. */
  readonly upstreamId: string | undefined;
  /** `stop`, `length`, `tool_calls` …, as the upstream worded it. */
  readonly finish: string | undefined;
  /** Which services the vendor says it has granted, by kind as in `Call`; a kind that it says nothing of is absent. */
  readonly services?: Services;
  /** What it says of what it made; over `Call.media`. */
  readonly media?: readonly string[];
}
export const usageReport = defineFact<UsageReport>('usage');

/** What a translation left out of the request, by the client's names; of the last attempt. Absent or empty: nothing. */
export const dropped = defineFact<readonly string[]>('dropped');

/** Watches a running answer against the money held for it. Stated by billing, called by the tap. */
export interface Meter {
  /** `outputTokens` seen so far, estimated. false: the hold is used up and the pool is empty; end the stream with an error. */
  observe(outputTokens: number): boolean;
  /** What was charged, and what that cost the operator as far as it is known; undefined: nothing, or it runs still. */
  charged?(): { readonly cost: Money; readonly own: Money | undefined } | undefined;
}
export const meter = defineFact<Meter>('meter');

// ------------------------------------------------------------------------------------------------------------- services

/** The gateway's database, by drizzle. Tables live in `schema`: use `pgSchema(database.schema)`. */
export interface Database {
  readonly orm: Orm;
  readonly schema: string;
  /** Applies the numbered SQL files of one plugin, once each, in order. `{schema}` in them is replaced, quoted. */
  migrate(plugin: string, directory: URL): Promise<void>;
  /** Announces a change to every process on this database, this one included, within a second: topic `key`, `account`, `lease …`. */
  announce(topic: string, subject: string): Promise<void>;
  /** Does `work` and announces it, in one transaction whose `orm` it is given: whoever dies in between leaves neither. */
  change<T>(topic: string, subject: string, work: (orm: Orm) => Promise<T>): Promise<T>;
  /** true: other processes may serve from it at the same time, so that balances are spent by leases. */
  readonly shared?: boolean;
  /** Called for each announcement. */
  onChange(topic: string, listener: (subject: string) => void): void;
  /** false while statements fail. */
  healthy(): boolean;
  /**
   * Only where the gateway itself keeps copies of the database, to go back to when its directory is damaged. `begin` is
   * called before each copy: all that was committed by then will be in it. What it returns is called once it is safe.
   */
  onCopy?(begin: () => () => void): void;
}
export type Orm = PgDatabase<PgQueryResultHKT, Record<string, never>>;
export const database = defineService<Database>('database');

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  /** Its own price ratio as decimal text; null or absent: 1. */
  readonly multiplier?: string | null;
  readonly createdAt: Date;
}
export interface Accounts {
  create(name: string, plan: string): Promise<Account>;
  /** By id or by name; undefined when there is none. */
  find(nameOrId: string): Promise<Account | undefined>;
  list(): Promise<Account[]>;
  /** Puts an account on a plan until `endsAt`, in whose transaction `orm` runs. The caller announces the account. */
  setPlan(orm: Orm, accountId: string, plan: string, endsAt: number | undefined): Promise<void>;
  /** A new key; `key` is told this once. */
  createKey(
    accountId: string,
    options: { name: string; models?: readonly string[]; expiresAt?: Date },
  ): Promise<{ id: string; key: string; prefix: string }>;
}
export const accounts = defineService<Accounts>('accounts');

export interface Catalog {
  find(id: string): Model | undefined;
  list(): readonly Model[];
}
export const catalog = defineService<Catalog>('catalog');

/** Whoever multiplies prices tells how low it goes, so that no sale below the own cost is configured. */
export interface Multipliers {
  /** The lowest ratio on this model's price that any plan comes to, without the account's own. */
  lowest(modelId: string): Ratio;
  /** The ratio on this model's price for accounts on this plan, without the account's own and the catalogue's. */
  of?(plan: string, modelId: string): Ratio;
}
export const multipliers = defineService<Multipliers>('multipliers');

/** Whoever keeps the prices tells whether a ratio of an account would go below the own cost. */
export interface PriceFloor {
  /** One sentence for each model that would be sold below its cost with this ratio on top of the lowest. */
  losses(multiplier: Ratio): readonly string[];
}
export const priceFloor = defineService<PriceFloor>('price floor');

/** Which protocols the gateway can speak with an upstream for a client of another. */
export interface Translations {
  /** Whether a call in the protocol `from` can be made of an upstream that speaks `to`; true where both are the same. */
  can(from: string, to: string): boolean;
}
export const translations = defineService<Translations>('translations');

/** The members of the gateway's own error bodies; whoever words errors inside a running stream puts them there too. */
export interface ErrorShape {
  /** `requestId` is the gateway's own id of the request. */
  members(error: GatewayError, requestId: string): Readonly<Record<string, string>>;
}
export const errorShape = defineService<ErrorShape>('error shape');

/** Addresses of vendors that run inside this process: base URLs that begin with `NAME:` resolve here. */
export interface LocalUpstreams {
  /** `http://127.0.0.1:PORT`. */
  origin(name: string): string | undefined;
}
export const localUpstreams = defineService<LocalUpstreams>('local upstreams');

/** Whether a rule of an endpoint list (`GET /v1/models`) or an operation name (`chat`) names this endpoint. */
export function endpointMatches(rule: string, endpoint: Endpoint): boolean {
  return rule === endpoint.operation || rule === `${endpoint.method} ${endpoint.path}`;
}

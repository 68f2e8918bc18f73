/** What a seed's world is like: how many nodes and accounts, how busy, how poor, how unreliable. */

import type { Model } from '../../plugins/common/domain/models.ts';
import { formatUsd, type Money, money, type Ratio } from '../../plugins/common/domain/money.ts';
import type { PlanOffer, PlanTerms } from '../../plugins/common/domain/plans.ts';
import { flatBook } from '../../plugins/common/domain/prices.ts';
import type { Timing } from '../../plugins/task-store/engine/dependencies.ts';
import { type BudgetsProfile, drawBudgets, settingsOf, zones } from './budgets.ts';
import type { Chance } from './chance.ts';
import { type BridgeProfile, drawBridge } from './lulls.ts';
import type { PriceList } from './tariff.ts';
import type { Offer } from './terms-oracle.ts';
import type { VendorProfile } from './vendors.ts';

export interface AccountProfile {
  readonly id: string;
  readonly plan: PlanTerms;
  readonly ratio: Ratio | undefined;
  /** The plans that it can buy, as the gateway reads them and as the oracle knows them. */
  readonly offers: readonly { readonly terms: PlanOffer; readonly offer: Offer }[];
}

export interface Profile {
  readonly nodes: number;
  /** Nodes spend by leases, as they must where there are several. */
  readonly shared: boolean;
  /** Each model serves the calls that the other one cannot. */
  readonly instead: boolean;
  /** Draw the conversations that calls belong to, and what requests name beside their model; undefined: none. */
  readonly talks: Chance | undefined;
  readonly names: Chance | undefined;
  /** Draws the answers that a cache has; undefined: there is none. */
  readonly cached: Chance | undefined;
  /** Draws what checks are to find in calls; undefined: there are none. */
  readonly guards: Chance | undefined;
  /** Draws operators' decisions on credit lines; undefined: there are none. */
  readonly credit: Chance | undefined;
  /** Some calls carry an Idempotency-Key. */
  readonly keys: boolean;
  readonly accounts: readonly AccountProfile[];
  readonly arrivalMeanMs: number;
  readonly topUpMeanMs: number;
  /** Between purchases, redemptions, debits and the like. */
  readonly tradeMeanMs: number;
  readonly topUp: Money;
  /** Percentage of calls that ask for a whole answer, which shows its length only at its end. */
  readonly wholePercent: number;
  /** Mean times between faults of each kind; Infinity: never. */
  readonly crashMeanMs: number;
  readonly diskMeanMs: number;
  readonly outageMeanMs: number;
  readonly clockStepMeanMs: number;
  /** Hours or days go by while no one calls, up to one of these numbers of hours. */
  readonly leapMeanMs: number;
  readonly leapHours: readonly number[];
  /** A crash may be a power cut. */
  readonly powerCuts: boolean;
  readonly databaseFaultOneIn: number;
  /** How long a statement is on its way, on the average. */
  readonly databaseMeanMs: number;
  readonly vendors: VendorProfile;
  /** Callers are asked for API keys; undefined: the one that comes is believed. */
  readonly callers: CallersProfile | undefined;
  /** A second try may run beside one that is silent; undefined: never. */
  readonly hedge: HedgeProfile | undefined;
  /** Images and films are ordered too; undefined: no one does. */
  readonly tasks: TaskProfile | undefined;
  /** Outages are bridged, and come after lulls; undefined: they are not. */
  readonly bridge: BridgeProfile | undefined;
  /** Sections of the gateway's file. */
  readonly billing: {
    readonly hold: { readonly output_tokens: number; readonly non_streaming: 'estimate' | 'max' };
    readonly journal: object;
    readonly budgets: readonly object[];
    readonly credit_lines?: object;
    readonly statements?: { readonly zone: string };
  };
  /** What may be spent, where callers are asked for keys; undefined: whatever accounts have. */
  readonly budgets: BudgetsProfile | undefined;
}

export interface CallersProfile {
  /** Between two keys that are made, changed or revoked. */
  readonly meanMs: number;
  /** Between two times in which a node cannot reach the database. */
  readonly cutMeanMs: number;
}

export interface HedgeProfile {
  /** Time of the route, and of models that override it; 0: never. */
  readonly afterMs: number;
  readonly ofModels: ReadonlyMap<string, number>;
  readonly share: number;
  readonly strategy: 'ordered' | 'fastest';
  /** Attempts of one call at most. */
  readonly attempts: number;
  /** Vendors whose answers are read on without a client: for how long, and how many bytes. */
  readonly drains: ReadonlyMap<string, { readonly longestMs: number; readonly bytes: number }>;
  /** Calls that a process may have under way at one vendor; undefined: as many as come. */
  readonly places: number | undefined;
  /** What tries that may have run before another one may cost, as a share of what the calls cost. */
  readonly absorb: number;
}

export interface TaskProfile {
  /** Between two orders. */
  readonly meanMs: number;
  /** Steps that a process does at the same time. */
  readonly workers: number;
  readonly timing: Timing;
  /** One in so many results cannot be kept at once; 0: none. */
  readonly filesFaultOneIn: number;
}

/** Chances of their own draw whether and how tasks are ordered, callers are asked for keys, and calls are hedged. */
export interface OtherChances {
  readonly tasks: Chance;
  readonly callers: Chance;
  readonly hedges: Chance;
  readonly instead: Chance;
  readonly talks: Chance;
  readonly names: Chance;
  readonly bridges: Chance;
  readonly cached: Chance;
  readonly budgets: Chance;
  readonly guards: Chance;
  readonly credit: Chance;
}

export function drawProfile(chance: Chance, others: OtherChances): Profile {
  const nodes = chance.between(1, 3);
  // All nodes want the little that one account has.
  const isCrowded = nodes > 1 && chance.oneIn(3);
  const topUp = isCrowded ? 2_000_000 : chance.pick([1_000_000, 50_000_000, 5_000_000_000]);
  const accounts = Array.from({ length: isCrowded ? 1 : chance.between(1, 6) }, (_, index) =>
    drawAccount(chance, index, topUp),
  );
  const stepTokens = chance.pick([100, 500, 2_000]);
  const rest = {
    nodes,
    shared: nodes > 1 || chance.oneIn(4),
    keys: chance.oneIn(2),
    accounts,
    arrivalMeanMs: isCrowded ? 2 : chance.pick([2, 5, 5, 20]),
    topUpMeanMs: isCrowded ? 50 : chance.pick([50, 200, 1_000]),
    tradeMeanMs: chance.pick([Number.POSITIVE_INFINITY, 20, 100]),
    topUp: money(BigInt(topUp)),
    wholePercent: chance.pick([0, 25]),
    crashMeanMs: chance.pick([1_000, 5_000, 20_000]),
    diskMeanMs: chance.pick([Number.POSITIVE_INFINITY, 5_000]),
    outageMeanMs: chance.pick([Number.POSITIVE_INFINITY, 4_000]),
    leapMeanMs: chance.pick([Number.POSITIVE_INFINITY, 1_000, 5_000]),
    leapHours: [1, 6, 30, 200],
    clockStepMeanMs: chance.pick([Number.POSITIVE_INFINITY, 3_000]),
    powerCuts: chance.oneIn(3),
    databaseFaultOneIn: chance.pick([0, 10, 50]),
    databaseMeanMs: isCrowded ? chance.pick([1.5, 8, 20]) : 1.5,
    vendors: { troublePercent: chance.pick([0, 2, 10, 40]), longestOutput: chance.pick([200, 3_000]) },
    billing: {
      hold: { output_tokens: stepTokens, non_streaming: chance.pick(['estimate', 'max'] as const) },
      journal: { segment: chance.pick(['16KB', '64KB', '1MB']), limit: '8MB', backlog: 20_000 },
      budgets: [],
    },
  };
  const callers = others.callers.oneIn(3) ? drawCallers(others.callers) : undefined;
  const isHedged = others.hedges.oneIn(3) && callers === undefined;
  return {
    ...rest,
    callers,
    instead: others.instead.oneIn(3) && callers === undefined,
    talks: others.talks.oneIn(2) ? others.talks : undefined,
    names: others.names.oneIn(3) ? others.names : undefined,
    cached: others.cached.oneIn(4) ? others.cached : undefined,
    ...(others.guards.oneIn(4) && callers === undefined && !isHedged ? guarded(others.guards) : { guards: undefined }),
    hedge: isHedged ? drawHedge(others.hedges) : undefined,
    tasks: others.tasks.oneIn(2) ? drawTasks(others.tasks) : undefined,
    ...bridged(rest, others.bridges),
    ...(callers === undefined ? {} : calmer(rest.accounts)),
    ...budgetedAndCredited(rest, callers !== undefined, others),
  };
}

function budgetedAndCredited(
  rest: Pick<Profile, 'billing' | 'topUp' | 'leapMeanMs' | 'leapHours'>,
  hasCallers: boolean,
  { budgets, credit }: Pick<OtherChances, 'budgets' | 'credit'>,
): Pick<Profile, 'billing' | 'budgets' | 'leapMeanMs' | 'leapHours' | 'credit'> {
  const given = hasCallers ? budgeted(rest, budgets) : { ...rest, budgets: undefined };
  const { billing, leapMeanMs, leapHours } = given;
  return { budgets: given.budgets, leapMeanMs, leapHours, ...credited({ billing }, credit) };
}

/** In half of the worlds each account may spend only so much, each person, calls with a tag, and calls of one of the models. */
function budgeted(
  { billing, topUp, leapMeanMs, leapHours }: Pick<Profile, 'billing' | 'topUp' | 'leapMeanMs' | 'leapHours'>,
  chance: Chance,
): Pick<Profile, 'billing' | 'budgets' | 'leapMeanMs' | 'leapHours'> {
  const budgets = drawBudgets(chance, topUp);
  if (budgets === undefined) return { billing, budgets, leapMeanMs, leapHours };
  const models = {
    of: 'models',
    models: [chance.pick(['small', 'large'])],
    every: chance.pick(['day', 'week', 'year']),
    zone: chance.pick(['UTC', 'Europe/Berlin', 'America/New_York']),
    amount: formatUsd(money(BigInt(chance.between(1, 2 * Number(topUp))))),
  };
  // Days that begin elsewhere at other hours are to be seen to begin.
  const leaps = { leapMeanMs: chance.pick([leapMeanMs, 700]), leapHours: [1, 6, 6, 30] };
  return { billing: { ...billing, budgets: [...settingsOf(budgets), models] }, budgets, ...leaps };
}

/** In a quarter of the worlds accounts may use money before they pay, in some of them only while they pay in time. */
function credited({ billing }: Pick<Profile, 'billing'>, chance: Chance): Pick<Profile, 'billing' | 'credit'> {
  if (!chance.oneIn(4)) return { billing, credit: undefined };
  const stops = chance.oneIn(2) ? { stop_after: chance.pick(['0s', '1d', '9d']) } : {};
  const credit_lines = { pay_within: chance.pick(['1d', '14d']), ...stops };
  return { billing: { ...billing, credit_lines, statements: { zone: chance.pick(zones) } }, credit: chance };
}

/** Whole answers are refused before their head. */
const guarded = (guards: Chance) => ({ guards, wholePercent: 50 });

/** Accounts with next to nothing can keep little. */
function bridged(
  { shared, topUp }: Pick<Profile, 'shared' | 'topUp'>,
  chance: Chance,
): Pick<Profile, 'bridge' | 'topUp'> {
  const bridge = shared ? drawBridge(chance) : undefined;
  return { bridge, topUp: bridge?.areRich === true ? money(5_000_000_000n) : topUp };
}

/** What is to be known within a second takes worlds that last for some, and keys that stay in memory: each top-up tells to forget. */
function calmer(accounts: Profile['accounts']): Partial<Profile> {
  const never = Number.POSITIVE_INFINITY;
  const rarely = { arrivalMeanMs: 20, topUpMeanMs: 3_000, tradeMeanMs: never, crashMeanMs: 10_000 };
  return { accounts: accounts.slice(0, 2), ...rarely, tasks: undefined };
}

function drawCallers(chance: Chance): CallersProfile {
  return { meanMs: chance.pick([150, 400]), cutMeanMs: chance.pick([Number.POSITIVE_INFINITY, 2_000]) };
}

/** Vendors are silent for 80 ms on the average. */
function drawHedge(chance: Chance): HedgeProfile {
  const ofModels = new Map(chance.oneIn(3) ? [['large', chance.pick([0, 15])]] : []);
  const drained = vendorNames.filter(() => chance.oneIn(2));
  const bounds = () => ({ longestMs: chance.pick([20, 150, 2_000]), bytes: chance.pick([40, 1_000]) });
  const rest = {
    afterMs: chance.pick([10, 10, 40]),
    ofModels,
    share: chance.pick([0.1, 0.5, 1, 1]),
    strategy: chance.pick(['ordered', 'fastest'] as const),
    attempts: chance.pick([2, 3, 5]),
    drains: new Map(drained.map((name) => [name, bounds()])),
  };
  const places = chance.oneIn(2) ? chance.pick([3, 10, 40]) : undefined;
  return {
    ...rest,
    places,
    // Two cents are soon used up.
    absorb: chance.oneIn(3) ? 0 : places === undefined ? 0.05 : 0.002,
  };
}

/** Short enough that leases run out and deadlines pass within a world's time. */
function drawTasks(chance: Chance): TaskProfile {
  return {
    meanMs: chance.pick([50, 200]),
    workers: chance.pick([1, 4]),
    timing: {
      leaseMs: chance.pick([150, 600]),
      deadlineMs: { image: chance.pick([400, 3_000]), video: chance.pick([800, 4_000]) },
      reconcileMs: chance.pick([0, 300]),
      pollMs: 80,
      longestPollMs: 400,
      retryMs: 60,
      longestRetryMs: 500,
    },
    filesFaultOneIn: chance.pick([0, 4, 20]),
  };
}

function drawAccount(chance: Chance, index: number, topUp: number): AccountProfile {
  const limits: { rpm?: number; tpm?: number; concurrency?: number } = {};
  if (chance.oneIn(2)) limits.concurrency = chance.pick([1, 4, 20, 20]);
  if (chance.oneIn(6)) limits.rpm = chance.pick([10, 300, 3_000]);
  if (chance.oneIn(6)) limits.tpm = chance.pick([20_000, 1_000_000]);
  const ratios: readonly (Ratio | undefined)[] = [
    undefined,
    { numerator: 2n, denominator: 1n },
    { numerator: 1_333n, denominator: 1_000n },
    { numerator: 7n, denominator: 11n },
  ];
  const plan = { name: `plan-${index}`, limits, models: undefined, multiplier: undefined, ...drawGrant(chance) };
  const offers = ['silver', 'gold'].map((name) => drawOffer(chance, `${name}-${index}`, limits, topUp));
  return { id: `account-${index}`, plan, ratio: chance.pick(ratios), offers };
}

const dayMs = 24 * 3_600_000;
const periodsMs = { day: dayMs, week: 7 * dayMs };

/** A plan that is sold. Its limits are those of the plan that no one buys, so that the oracle need not know which holds. */
function drawOffer(chance: Chance, name: string, limits: PlanTerms['limits'], topUp: number) {
  const price = money(BigInt(chance.between(1, Math.ceil(topUp / chance.pick([2, 20])))));
  const every = chance.pick(['day', 'week'] as const);
  const amount = money(BigInt(chance.pick([2_000_000, 80_000_000, 3_000_000_000])));
  const grant = chance.oneIn(3) ? undefined : { amount, every };
  const days = chance.between(1, 9);
  const lastsMs = grant === undefined || chance.oneIn(2) ? days * dayMs : undefined;
  const renew = chance.oneIn(2);
  const windows = grant !== undefined && chance.oneIn(2) ? { '5h': money(amount / 3n) } : undefined;
  const shared = { name, limits, models: undefined, multiplier: undefined, price, durationMs: lastsMs, renew };
  const terms: PlanOffer = { ...shared, ...(grant && { grant }), ...(windows && { windows }) };
  const brings = grant && { amount, periodMs: periodsMs[every] };
  const offer: Offer = { name, price, lastsMs: lastsMs ?? periodsMs[every], renew, grant: brings };
  return { terms, offer };
}

/** Money that a plan brings by itself, perhaps within windows. */
function drawGrant(chance: Chance): Pick<PlanTerms, 'grant' | 'windows'> {
  if (!chance.oneIn(3)) return {};
  const amount = money(BigInt(chance.pick([2_000_000, 80_000_000, 3_000_000_000])));
  const grant = { amount, every: chance.pick(['day', 'week', 'month'] as const) };
  if (chance.oneIn(2)) return { grant };
  return { grant, windows: { '5h': money(amount / 3n), ...(chance.oneIn(2) ? { day: money(amount / 2n) } : {}) } };
}

export const vendorNames = ['north', 'east', 'west'] as const;

/** They paint and film. */
const studioNames = ['hill', 'dale'] as const;

/** Keys and addresses of the vendors; nothing is ever sent there. */
export function providerSectionsOf(hedge: HedgeProfile | undefined): object {
  const talkers = vendorNames.map((name, index) => [
    name,
    {
      keys: index === 0 ? ['a', 'b'] : 'a',
      speaks: { chat: 'http://127.0.0.1:9/v1' },
      ...placesIn(hedge),
      ...drainOf(hedge?.drains.get(name)),
    },
  ]);
  const painters = studioNames.map((name) => [
    name,
    { keys: ['a', 'b', 'c'], speaks: { paint: 'http://127.0.0.1:9/paint', film: 'http://127.0.0.1:9/film' } },
  ]);
  return Object.fromEntries([...talkers, ...painters]);
}

/** No one waits for a place: what is set aside for whom, the oracle learns when a try begins. */
function placesIn(hedge: HedgeProfile | undefined): object {
  return hedge?.places === undefined ? {} : { concurrency: hedge.places, queue: { length: 0 } };
}

function drainOf(bounds: { readonly longestMs: number; readonly bytes: number } | undefined): object {
  if (bounds === undefined) return {};
  return { client_left: 'drain', drain: { longest: `${bounds.longestMs}ms`, bytes: bounds.bytes } };
}

/** How long keys rest that a vendor turned away: short, so that they come back within a world's time. */
const cooldown = { rate_limited: '1s', max: '2s', unauthorized: '4s' };

export function routeSectionOf(hedge: HedgeProfile | undefined): object {
  if (hedge === undefined) return { cooldown };
  const { afterMs, share, strategy, attempts, absorb } = hedge;
  return { cooldown, strategy, attempts, absorb, hedge: { after: `${afterMs}ms`, share } };
}

/** A catalogue entry, and the list that its price was made of. */
export interface PricedModel {
  readonly model: Model;
  readonly price: PriceList;
}

/** A catalogue entry with a price list of its own; a new one stands for a change of prices. */
export function drawModel(chance: Chance, id: string, version: number): PricedModel {
  const price = drawPrice(chance);
  const targets = vendorNames.map((provider) => ({ provider, model: `${id}-at-${provider}`, weight: chance.below(3) }));
  const some = targets.slice(0, chance.between(1, targets.length));
  return { model: { ...modelOf(id, price, version), kind: 'chat', targets: some, maxOutputTokens: 4_000 }, price };
}

/** One that paints or films, at both vendors. */
export function drawMedia(chance: Chance, id: string, version: number): PricedModel {
  const price = drawPrice(chance);
  const targets = studioNames.map((provider) => ({ provider, model: id, weight: chance.below(2) }));
  return { model: { ...modelOf(id, price, version), kind: 'image', targets, maxOutputTokens: undefined }, price };
}

function drawPrice(chance: Chance): PriceList {
  const perMillion = () => BigInt(chance.pick([0, 1, 333_333, 2_500_000_000, 15_000_000_001]));
  return {
    input: perMillion(),
    output: perMillion(),
    ...(chance.oneIn(2) ? { cache_read: perMillion() } : {}),
    ...(chance.oneIn(3) ? { reasoning: perMillion() } : {}),
    ...(chance.oneIn(4) ? { call: BigInt(chance.pick([1, 2_500_000])) } : {}),
  };
}

function modelOf(id: string, price: PriceList, version: number) {
  const reported = { id, ownedBy: 'simulation', created: 0, displayName: id, contextTokens: undefined };
  return { ...reported, prices: flatBook(price, `v${version}`) };
}

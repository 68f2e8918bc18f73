/** The clients: who calls what, on which plan and at which node, and who asks again under a key. */
import type { Caller } from '../../plugins/common/domain/accounts.ts';
import { drawBeside } from './beside.ts';
import { drawCached } from './cached.ts';
import type { Callers } from './callers.ts';
import type { Chance } from './chance.ts';
import type { ClientCall } from './client-call.ts';
import { drawMarks, marksAgain } from './guarded.ts';
import type { ShopTables } from './memory-shop.ts';
import type { Mutant } from './mutants.ts';
import type { Node } from './node.ts';
import type { Oracle } from './oracle.ts';
import { type AccountProfile, drawModel, type PricedModel, type Profile } from './profile.ts';
import type { Runs } from './runs.ts';
import type { Schedule } from './schedule.ts';
import type { Tools } from './tools.ts';
import { newTrace, type Trace } from './trace.ts';
import { Visit } from './visit.ts';

export const modelIds = ['small', 'large'] as const;
const one = { numerator: 1n, denominator: 1n };
/** Calls that are remembered to be asked again, or given back. */
const remembered = 20;
/** Where there are other nodes to go to, one in so many calls under a key is the last of its node. */
const fatalOneIn = 25;

export interface ArrivalsOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly profile: Profile;
  readonly oracle: Oracle;
  readonly tables: ShopTables;
  readonly nodes: readonly Node[];
  readonly mutant: Mutant;
  /** undefined: no call shares a budget with others. */
  readonly runs: Runs | undefined;
  /** undefined: no one calls tools. */
  readonly tools: Tools | undefined;
  /** undefined: no one asks for API keys here. */
  readonly callers: Callers | undefined;
  /** A node with a call under a key is to die soon. */
  readonly strike: (node: Node) => void;
}

/** A call under a key, as it was sent first. */
interface KeyedCall {
  readonly account: AccountProfile;
  readonly call: ClientCall;
  /** It runs, or was the last that did. */
  trace: Trace;
}

/** After how much silence it may be tried beside itself, by the gateway's file; undefined: never. */
function hedgeAfterMsOf({ model, leavesTraces }: ClientCall, { hedge }: Profile): number | undefined {
  if (hedge === undefined || leavesTraces !== false) return undefined;
  const afterMs = hedge.ofModels.get(model.id) ?? hedge.afterMs;
  return afterMs === 0 ? undefined : afterMs;
}

export class Arrivals {
  readonly #options: ArrivalsOptions;
  readonly #models = new Map<string, PricedModel>();
  /** Keyed calls that a client may send again. */
  #keyed: KeyedCall[] = [];
  readonly #recent = new Map<string, string[]>();
  #versions = 0;
  /** Calls that came to a node while it could not reach the database. */
  readonly inOutage: Trace[] = [];

  constructor(options: ArrivalsOptions) {
    this.#options = options;
    for (const id of modelIds) this.changePrices(id);
  }

  changePrices(id: string): void {
    this.#versions += 1;
    const { chance, profile } = this.#options;
    const { model, price } = drawModel(chance, id, this.#versions);
    const own = profile.hedge?.ofModels.get(id);
    this.#models.set(id, { model: own === undefined ? model : { ...model, hedgeAfterMs: own }, price });
  }

  /** Calls of an account that have ended, the last ones. */
  endedOf(account: string): string[] {
    const { traces } = this.#options.oracle;
    return (this.#recent.get(account) ?? []).filter((id) => traces.get(id)!.ended);
  }

  arrive(): void {
    const { chance, profile, nodes, tools } = this.#options;
    const account = chance.pick(profile.accounts);
    const node = chance.pick(nodes);
    if (tools?.comes === true) {
      tools.call(account, node, this.planOf(account, node));
      return;
    }
    const again = chance.oneIn(5) ? this.#sentBefore(account, node) : undefined;
    const call = again ?? this.#newCall(account, node);
    // Who has no API key yet waits for one.
    if (call !== undefined) this.#send(account, node, call);
  }

  /** Keyed calls that run at a node. */
  runningAt(node: number): KeyedCall[] {
    return this.#keyed.filter(({ trace }) => trace.node === node && !trace.ended);
  }

  /** The same once more, wherever somebody serves. */
  sendAgain({ account, call }: KeyedCall): void {
    const { chance, nodes } = this.#options;
    const serving = nodes.filter((node) => node.serving !== undefined);
    if (serving.length === 0) return;
    const node = chance.pick(serving);
    this.#send(account, node, this.#renewed(call, account, node));
  }

  #send(account: AccountProfile, node: Node, call: ClientCall): void {
    const { schedule, chance, profile, oracle, mutant } = this.#options;
    const { serving } = node;
    if (serving === undefined) return;
    schedule.current = serving.life;
    const exchange = Visit.exchangeOf(serving, call);
    const { output_tokens: stepTokens, non_streaming: nonStreaming } = profile.billing.hold;
    const longest = call.call.maxOutputTokens ?? 4_000;
    const trace = newTrace({
      id: exchange.id,
      account: account.id,
      life: serving.life,
      node: node.index,
      list: call.price,
      ratio: call.ratio ?? one,
      inputTokens: call.call.inputTokens,
      heldOutput: nonStreaming === 'estimate' || call.call.stream ? Math.min(longest, stepTokens) : longest,
      hedgeAfterMs: hedgeAfterMsOf(call, profile),
      isPure: call.leavesTraces === false,
      stream: call.call.stream,
      mark: call.mark,
      names: call.beside?.other && { model: call.beside.other.model.id, field: call.beside.field },
    });
    if (!node.canRead) this.inOutage.push(trace);
    oracle.absorb.watch(exchange, trace);
    mutant.exchange?.(exchange, chance);
    const lists = call.other === undefined ? [call.price] : [call.price, call.other.price];
    oracle.arrived(trace, call.call.maxOutputTokens ?? profile.vendors.longestOutput, lists);
    this.#recent.set(account.id, [...(this.#recent.get(account.id) ?? []).slice(-remembered), trace.id]);
    if (call.key !== undefined) {
      this.#remember(call.key, { account, call, trace });
      if (this.#options.nodes.length > 1 && chance.oneIn(fatalOneIn)) this.#options.strike(node);
    }
    const { vendors } = profile;
    new Visit(
      { schedule, chance, oracle, vendors, line: () => node.disk.writes, reads: mutant.reads ?? ((json) => json) },
      serving,
      trace,
      exchange,
      this.#options.runs?.join(call, trace) ?? call,
    ).begin();
  }

  #remember(key: string, call: KeyedCall): void {
    this.#options.oracle.keys.arrived(call.trace, key, call.call.body);
    const known = this.#keyed.find(({ call }) => call.key === key);
    if (known === undefined) this.#keyed = [...this.#keyed.slice(-remembered), call];
    else if (known.trace.ended) known.trace = call.trace;
  }

  /** A client asks again under its key, on the plan that it is on by now; now and then by mistake for something else. */
  #sentBefore(account: AccountProfile, node: Node): ClientCall | undefined {
    const { chance } = this.#options;
    const own = this.#keyed.filter((call) => call.account === account);
    if (own.length === 0) return undefined;
    const call = this.#renewed(chance.pick(own).call, account, node);
    return chance.oneIn(20) ? { ...call, body: `${call.body} other` } : call;
  }

  #renewed(first: ClientCall, account: AccountProfile, node: Node): ClientCall {
    const plan = this.planOf(account, node);
    const apiKey = this.#options.callers?.keyOf(account.id);
    const { guards } = this.#options.profile;
    const marks = guards && first.marks && marksAgain(guards, first.marks);
    return { ...first, plan, apiKey, marks, caller: { ...first.caller, plan: plan.name } };
  }

  #newCall(account: AccountProfile, node: Node): ClientCall | undefined {
    const { chance, profile, callers } = this.#options;
    const { id, ratio } = account;
    const apiKey = callers?.keyOf(id);
    if (callers !== undefined && apiKey === undefined) return undefined;
    const own = this.#models.get(chance.pick(modelIds))!;
    const { model, price } = own;
    const { mark, grown } = this.#drawTalk();
    const inputTokens = chance.pick([0, 1, 100, 3_000]) + grown;
    const maxOutputTokens = chance.oneIn(2) ? chance.between(1, 3_000) : undefined;
    const plan = this.planOf(account, node);
    const longest = maxOutputTokens ?? profile.vendors.longestOutput;
    return {
      caller: { accountId: id, keyId: `${id}-key`, plan: plan.name, models: this.#allowed(model.id) },
      mark,
      ...this.#drawBeside(own),
      plan,
      model,
      price,
      other: profile.instead ? this.#models.get(modelIds.find((name) => name !== model.id)!) : undefined,
      cached: profile.cached && drawCached(profile.cached, inputTokens, longest),
      marks: profile.guards && drawMarks(profile.guards),
      ratio,
      apiKey,
      key: profile.keys && chance.oneIn(4) ? `key-${chance.next()}` : undefined,
      body: `body-${chance.next()}`,
      call: {
        protocol: 'chat',
        model: model.id,
        stream: chance.below(100) >= profile.wholePercent,
        billable: true,
        inputTokens,
        maxOutputTokens,
        choices: 1,
      },
      leavesAfterMs: chance.oneIn(8) ? chance.delay(100) : undefined,
      ...this.#drawHedged(),
    };
  }

  /** Draws one of an account's few conversations, some of which have tools. */
  #drawTalk(): { readonly mark: number | undefined; readonly grown: number } {
    const { talks } = this.#options.profile;
    if (talks?.oneIn(4) !== false) return { mark: undefined, grown: 0 };
    return { mark: talks.between(2, 5), grown: talks.pick([0, 0, 30, 2_000]) };
  }

  /** Some keys may call their own model alone. */
  #allowed(id: string): Caller['models'] {
    const { names, instead } = this.#options.profile;
    return names?.oneIn(2) === true && !instead ? new Set([id]) : undefined;
  }

  #drawBeside(own: PricedModel): Pick<ClientCall, 'beside'> {
    const { names } = this.#options.profile;
    if (names?.oneIn(6) !== true) return { beside: undefined };
    return { beside: drawBeside(names, own, [...this.#models.values()]) };
  }

  /** Nothing is drawn where no one hedges. */
  #drawHedged(): Pick<ClientCall, 'leavesTraces' | 'lastsMs'> & Partial<ClientCall> {
    const { chance, profile } = this.#options;
    if (profile.hedge === undefined) return { leavesTraces: undefined, lastsMs: undefined };
    const leavesTraces = chance.oneIn(8);
    const leavesAfterMs = chance.oneIn(3) ? chance.delay(100) : undefined;
    return { leavesTraces, leavesAfterMs, lastsMs: !leavesTraces && chance.oneIn(25) ? chance.delay(150) : undefined };
  }

  /** As the plans plugin states it: a plan that has ended is followed by the one that no one buys. */
  planOf({ id, plan, offers }: AccountProfile, node: Node): ClientCall['plan'] {
    const bought = this.#options.tables.plans.get(id);
    if (bought === undefined || node.wallClock >= (bought.endsAt ?? Number.POSITIVE_INFINITY)) return plan;
    return offers.find(({ terms }) => terms.name === bought.plan)!.terms;
  }
}

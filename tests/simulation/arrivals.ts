/** The clients: who calls what, on which plan and at which node, and who asks again under a key. */
import type { Caller } from '../../plugins/common/domain/accounts.ts';
import type { Ask } from './ask.ts';
import { drawBeside } from './beside.ts';
import type { Callers } from './callers.ts';
import type { Chance } from './chance.ts';
import type { ShopTables } from './memory-shop.ts';
import type { Mutant } from './mutants.ts';
import type { Node } from './node.ts';
import type { Oracle } from './oracle.ts';
import { type AccountProfile, drawModel, type PricedModel, type Profile } from './profile.ts';
import type { Schedule } from './schedule.ts';
import { newStory, type Story } from './story.ts';
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
  /** undefined: nobody asks for API keys here. */
  readonly callers: Callers | undefined;
  /** A node with a call under a key is to die soon. */
  readonly strike: (node: Node) => void;
}

/** A call under a key, as it was sent first. */
interface KeyedCall {
  readonly account: AccountProfile;
  readonly ask: Ask;
  /** It runs, or was the last that did. */
  story: Story;
}

/** After how much silence it may be tried beside itself, by the gateway's file; undefined: never. */
function hedgeAfterMsOf({ model, leavesTraces }: Ask, { hedge }: Profile): number | undefined {
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
    const { stories } = this.#options.oracle;
    return (this.#recent.get(account) ?? []).filter((id) => stories.get(id)!.ended);
  }

  arrive(): void {
    const { chance, profile, nodes } = this.#options;
    const account = chance.pick(profile.accounts);
    const node = chance.pick(nodes);
    const again = chance.oneIn(5) ? this.#sentBefore(account, node) : undefined;
    const ask = again ?? this.#ask(account, node);
    // Who has no API key yet waits for one.
    if (ask !== undefined) this.#send(account, node, ask);
  }

  /** Keyed calls that run at a node. */
  runningAt(node: number): KeyedCall[] {
    return this.#keyed.filter(({ story }) => story.node === node && !story.ended);
  }

  /** The same once more, wherever somebody serves. */
  askAgain({ account, ask }: KeyedCall): void {
    const { chance, nodes } = this.#options;
    const serving = nodes.filter((node) => node.serving !== undefined);
    if (serving.length === 0) return;
    const node = chance.pick(serving);
    this.#send(account, node, this.#renewed(ask, account, node));
  }

  #send(account: AccountProfile, node: Node, ask: Ask): void {
    const { schedule, chance, profile, oracle, mutant } = this.#options;
    const { serving } = node;
    if (serving === undefined) return;
    schedule.current = serving.life;
    const exchange = Visit.exchangeOf(serving, ask);
    const { output_tokens: stepTokens, non_streaming: nonStreaming } = profile.billing.hold;
    const longest = ask.call.maxOutputTokens ?? 4_000;
    const story = newStory({
      id: exchange.id,
      account: account.id,
      life: serving.life,
      node: node.index,
      list: ask.price,
      ratio: ask.ratio ?? one,
      inputTokens: ask.call.inputTokens,
      heldOutput: nonStreaming === 'estimate' || ask.call.stream ? Math.min(longest, stepTokens) : longest,
      hedgeAfterMs: hedgeAfterMsOf(ask, profile),
      isPure: ask.leavesTraces === false,
      stream: ask.call.stream,
      mark: ask.mark,
      names: ask.beside?.other && { model: ask.beside.other.model.id, field: ask.beside.field },
    });
    oracle.absorb.watch(exchange, story);
    mutant.exchange?.(exchange, chance);
    const lists = ask.other === undefined ? [ask.price] : [ask.price, ask.other.price];
    oracle.arrived(story, ask.call.maxOutputTokens ?? profile.vendors.longestOutput, lists);
    this.#recent.set(account.id, [...(this.#recent.get(account.id) ?? []).slice(-remembered), story.id]);
    if (ask.key !== undefined) {
      this.#remember(ask.key, { account, ask, story });
      if (this.#options.nodes.length > 1 && chance.oneIn(fatalOneIn)) this.#options.strike(node);
    }
    const { vendors } = profile;
    new Visit(
      { schedule, chance, oracle, vendors, line: () => node.disk.writes, reads: mutant.reads ?? ((json) => json) },
      serving,
      story,
      exchange,
      ask,
    ).begin();
  }

  #remember(key: string, call: KeyedCall): void {
    this.#options.oracle.keys.arrived(call.story, key, call.ask.body);
    const known = this.#keyed.find(({ ask }) => ask.key === key);
    if (known === undefined) this.#keyed = [...this.#keyed.slice(-remembered), call];
    else if (known.story.ended) known.story = call.story;
  }

  /** A client asks again under its key, on the plan that it is on by now; now and then by mistake for something else. */
  #sentBefore(account: AccountProfile, node: Node): Ask | undefined {
    const { chance } = this.#options;
    const own = this.#keyed.filter((call) => call.account === account);
    if (own.length === 0) return undefined;
    const ask = this.#renewed(chance.pick(own).ask, account, node);
    return chance.oneIn(20) ? { ...ask, body: `${ask.body} other` } : ask;
  }

  #renewed(first: Ask, account: AccountProfile, node: Node): Ask {
    const plan = this.planOf(account, node);
    const apiKey = this.#options.callers?.keyOf(account.id);
    return { ...first, plan, apiKey, caller: { ...first.caller, plan: plan.name } };
  }

  #ask(account: AccountProfile, node: Node): Ask | undefined {
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
    return {
      caller: { accountId: id, keyId: `${id}-key`, plan: plan.name, models: this.#allowed(model.id) },
      mark,
      ...this.#drawBeside(own),
      plan,
      model,
      price,
      other: profile.instead ? this.#models.get(modelIds.find((name) => name !== model.id)!) : undefined,
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

  /** Of a few conversations for each account, some with tools. */
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

  #drawBeside(own: PricedModel): Pick<Ask, 'beside'> {
    const { names } = this.#options.profile;
    if (names?.oneIn(6) !== true) return { beside: undefined };
    return { beside: drawBeside(names, own, [...this.#models.values()]) };
  }

  /** Nothing is drawn where nobody hedges. */
  #drawHedged(): Pick<Ask, 'leavesTraces' | 'lastsMs'> & Partial<Ask> {
    const { chance, profile } = this.#options;
    if (profile.hedge === undefined) return { leavesTraces: undefined, lastsMs: undefined };
    const leavesTraces = chance.oneIn(8);
    const leavesAfterMs = chance.oneIn(3) ? chance.delay(100) : undefined;
    return { leavesTraces, leavesAfterMs, lastsMs: !leavesTraces && chance.oneIn(25) ? chance.delay(150) : undefined };
  }

  /** As the plans plugin states it: a plan that has ended is followed by the one that nobody buys. */
  planOf({ id, plan, offers }: AccountProfile, node: Node): Ask['plan'] {
    const bought = this.#options.tables.plans.get(id);
    if (bought === undefined || node.wallClock >= (bought.endsAt ?? Number.POSITIVE_INFINITY)) return plan;
    return offers.find(({ terms }) => terms.name === bought.plan)!.terms;
  }
}

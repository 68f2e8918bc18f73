/** Calls of tools, and web searches: servers that answer, fail, break or are away, clients that stay, cancel or leave, and what each call must cost. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ProtocolError } from '@modelcontextprotocol/server';
import { type Endpoint, type Outcome, upstreamRequest } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { toGatewayError } from '../../core/contract/upstream-failures.ts';
import type { Run } from '../../core/http/chain.ts';
import { LiveExchange } from '../../core/http/exchange.ts';
import { createForward } from '../../core/http/forward.ts';
import type { IncomingRequest } from '../../core/http/incoming-request.ts';
import { caller } from '../../plugins/common/domain/accounts.ts';
import { call } from '../../plugins/common/domain/calls.ts';
import { model } from '../../plugins/common/domain/models.ts';
import { money, type Ratio } from '../../plugins/common/domain/money.ts';
import { type PlanTerms, plan } from '../../plugins/common/domain/plans.ts';
import { priceRatio } from '../../plugins/common/domain/price-ratio.ts';
import { flatBook } from '../../plugins/common/domain/prices.ts';
import { invalidParams, refuseLeft, Unavailable, WrongArguments } from '../../plugins/mcp/errors.ts';
import { asked } from '../../plugins/mcp/request.ts';
import { Running } from '../../plugins/mcp/running.ts';
import type { FoundTool } from '../../plugins/mcp/servers.ts';
import { callTool } from '../../plugins/mcp/tool-call.ts';
import type { RequestOptions } from '../../plugins/mcp/upstream.ts';
import type { Chance } from './chance.ts';
import type { Node } from './node.ts';
import type { Oracle } from './oracle.ts';
import type { Process } from './process.ts';
import type { AccountProfile } from './profile.ts';
import type { Schedule } from './schedule.ts';
import { searchFates, searchWith } from './searches.ts';
import type { Counts } from './tariff.ts';
import { newTrace, newTry, type Trace, type Try } from './trace.ts';

export const toolEndpoint: Endpoint = {
  method: 'POST',
  path: '/mcp',
  operation: 'tool-call',
  body: 'none',
  setsOnOpen: [call as never],
};

/** What becomes of a call that is not cancelled. */
type Fate = 'answers' | 'reports-failure' | 'asks-for-input' | 'refuses' | 'breaks' | 'is-away' | 'wrong-arguments';
const fates: readonly Fate[] = [
  ...(['answers', 'answers', 'answers', 'reports-failure', 'asks-for-input'] as const),
  ...(['refuses', 'breaks', 'is-away', 'wrong-arguments'] as const),
];
const one = { numerator: 1n, denominator: 1n };
const session = { 'mcp-session-id': 'session', 'mcp-protocol-version': '2025-11-25' };
const headers = { ...session, 'content-type': 'application/json' };
const noQuery = new URLSearchParams();
const noSocket = {} as IncomingMessage & ServerResponse;
const mostAtOnce = 1_000_000;
/** The real centre, which leaves each call to the plugin. */
const centre = createForward(1_000_000, 1);

interface Ground {
  readonly schedule: Schedule;
  readonly oracle: Oracle;
  /** What a mutant changes of an exchange. */
  readonly change: ((exchange: LiveExchange) => void) | undefined;
}

export class Tools {
  readonly #chance: Chance;
  readonly #searches: Chance;
  readonly #ground: Ground;

  /** `searches`: draws which of the calls are searches, and what becomes of those. */
  constructor(chance: Chance, searches: Chance, ground: Ground) {
    this.#chance = chance;
    this.#searches = searches;
    this.#ground = ground;
  }

  /** One arrival of four is a call of a tool. */
  get comes(): boolean {
    return this.#chance.oneIn(4);
  }

  call(account: AccountProfile, node: Node, terms: PlanTerms): void {
    const { serving } = node;
    if (serving === undefined) return;
    this.#ground.schedule.current = serving.life;
    const searches = this.#searches.oneIn(3) ? this.#searches : undefined;
    new ToolCall(this.#chance, this.#ground, { account, node, terms, process: serving, searches }).begin();
  }
}

interface From {
  readonly account: AccountProfile;
  readonly node: Node;
  readonly terms: PlanTerms;
  readonly process: Process;
  /** undefined: it is the call of a tool. */
  readonly searches: Chance | undefined;
}

class ToolCall {
  readonly #chance: Chance;
  readonly #ground: Ground;
  readonly #from: From;
  readonly #exchange: LiveExchange;
  readonly #trace: Trace;
  readonly #attempt: Try;
  #fate: Fate;
  /** A server charges for failures too. */
  readonly #paysFailures: boolean;
  readonly #price: bigint;
  readonly #counted: Counts;
  readonly #running = new Running();

  constructor(chance: Chance, ground: Ground, from: From) {
    const { account, node, process } = from;
    this.#chance = chance;
    this.#ground = ground;
    this.#from = from;
    this.#fate = chance.pick(fates);
    this.#paysFailures = chance.oneIn(2);
    this.#price = BigInt(chance.pick([0, 1, 2_500_000, 40_000_001]));
    const request = { path: toolEndpoint.path, query: noQuery, headers, remoteAddress: '192.0.2.1', body: Buffer.of() };
    const incoming = { ...request, bodyBytes: 0 } as unknown as IncomingRequest;
    const logs = { log: process.log, sources: [] };
    const { clock } = process.host;
    this.#exchange = new LiveExchange(process.newId(), toolEndpoint, incoming, noSocket, noSocket, clock, logs);
    this.#counted = from.searches === undefined ? { call: 1 } : { web_search: 1 };
    const list = { input: 0n, output: 0n, ...this.#prices };
    this.#trace = newTrace({
      ...{ id: this.#exchange.id, account: account.id, life: process.life, node: node.index, list },
      ...{ ratio: account.ratio ?? one, inputTokens: 0, heldOutput: 0, hedgeAfterMs: undefined, isPure: false },
      ...{ stream: false, mark: undefined, names: undefined, counted: this.#counted },
    });
    const at = ground.schedule.now;
    const about = { provider: 'town', credential: 'town', target: 'tool', list, isRacing: false, isDrained: false };
    this.#attempt = newTry({ ...about, at });
  }

  get #prices() {
    const price = money(this.#price);
    return this.#from.searches === undefined ? { call: price } : { web_search: price };
  }

  begin(): void {
    const { schedule, oracle, change } = this.#ground;
    const { process } = this.#from;
    const exchange = this.#exchange;
    change?.(exchange);
    oracle.arrived(this.#trace, 0, [this.#trace.list]);
    this.#open();
    const [leaves, cancels] = [this.#chance.oneIn(6), this.#chance.oneIn(6)];
    const after = (label: string, work: () => void) =>
      schedule.after(this.#chance.delay(60), process.life, label, () => this.#trace.ended || work());
    if (leaves) after('tool left', () => exchange.disconnect(process.host.clock.monotonic()));
    if (cancels) after('tool cancelled', () => this.#running.cancel(exchange, { params: { requestId: 1 } }));
    oracle.limits.entered(this.#trace);
    process
      .callTool(exchange, (next) => this.#called(next))
      .then(
        (answer) => void this.#answered(answer),
        (error: unknown) => {
          const refusal = toGatewayError(error);
          this.#trace.status = refusal.status;
          oracle.refused(this.#trace, refusal);
          this.#end('complete');
        },
      );
  }

  /** As the plugin opens a request to call a tool. */
  #open(): void {
    const exchange = this.#exchange;
    const { account, terms } = this.#from;
    const id = 'town__tool';
    const [protocol, contextTokens] = ['mcp', undefined];
    const counts = { inputTokens: 0, maxOutputTokens: 0, choices: 1, counted: this.#counted };
    const entry = {
      ...{ id, ownedBy: 'town', created: 0, displayName: id, kind: 'chat' as const, contextTokens, maxOutputTokens: 0 },
      targets: [{ provider: 'town', model: 'tool', weight: 0 }],
      prices: flatBook(this.#prices, 'tools'),
    };
    exchange.set(call, { protocol, model: id, stream: false, billable: true, ...counts });
    exchange.set(plan, terms);
    exchange.set(model, entry);
    if (account.ratio !== undefined) exchange.set(priceRatio, account.ratio as Ratio);
    exchange.set(caller, { accountId: account.id, keyId: `${account.id}-key`, plan: terms.name, models: undefined });
    const upstream = {
      name: 'town',
      settings: { price: { failed: this.#paysFailures } },
      request: (_method: string, _params: object, options: RequestOptions) => this.#request(options),
    };
    const health = { calls: 0, failed: 0, lastFailureAt: undefined };
    const tool = { name: 'tool', inputSchema: { type: 'object' } };
    const found = { upstream, tool, entry, health } as unknown as FoundTool;
    const params = { name: id, arguments: {} };
    exchange.set(asked, { message: { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, found } as never);
  }

  /** It has passed the limiter and has money set aside. */
  #called(next: () => Promise<Answer>): Promise<Answer> {
    const trace = this.#trace;
    const { oracle } = this.#ground;
    const { process, node } = this.#from;
    const exchange = this.#exchange;
    trace.tries.push(this.#attempt);
    oracle.held(trace);
    trace.departures = this.#attempt.departure = 1;
    exchange.beforeFirstByte(() => {
      trace.departedLine = node.disk.writes;
      trace.departed = 1;
    });
    if (this.#from.searches !== undefined) return this.#search(this.#from.searches, next);
    const request = exchange.get(asked);
    const signal = this.#running.enter(exchange, request.message, mostAtOnce);
    return callTool(exchange, request, signal, process.host.clock, next);
  }

  /** A client that leaves does not end it. */
  #search(chance: Chance, next: () => Promise<Answer>): Promise<Answer> {
    const { host } = this.#from.process;
    const engine = {
      ...{ host, chance, fate: chance.pick(searchFates) },
      passes: (delayMs: number, label: string) => this.#passes(delayMs, label),
      received: () => this.#receive(),
      becomes: (state: 'answered' | 'refused' | 'broken') => this.#becomes(state),
    };
    return searchWith(this.#exchange, engine, next);
  }

  // ---------------------------------------------------------------------------------------------- the server's side

  #receive(): void {
    const attempt = this.#attempt;
    const { violations } = this.#ground.oracle;
    if (this.#trace.departed === 0) violations.add('M16', this.#trace.id, 'sent before the hold was in the journal');
    if (attempt.received && attempt.state !== 'refused')
      violations.add('M10', this.#trace.id, 'a tool is called twice');
    attempt.received = true;
    attempt.state = 'flying';
  }

  /** As a server of the protocol is asked: a connection first, then the request, then its word or silence. */
  async #request({ signal }: RequestOptions): Promise<object> {
    const attempt = this.#attempt;
    if (this.#fate === 'wrong-arguments') throw new WrongArguments('an argument is missing');
    await this.#passes(this.#chance.delay(10), 'tool connected');
    refuseLeft(signal);
    if (this.#fate === 'is-away') throw new Unavailable('The server is away.', false);
    this.#receive();
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => {
        if (attempt.state !== 'flying') return;
        this.#becomes('answered');
        reject(new Unavailable('The request was cancelled.', true, signal.reason));
      });
      void this.#passes(this.#chance.delay(60), `tool ${this.#fate}`).then(() => {
        if (attempt.state === 'flying') this.#comes(resolve, reject);
      });
    });
  }

  /** The word of a server that was not cancelled, and what its call costs then. */
  #comes(resolve: (result: object) => void, reject: (error: Error) => void): void {
    const content = [{ type: 'text', text: 'done' }];
    const fails = (state: 'refused' | 'broken') => this.#becomes(this.#paysFailures ? 'answered' : state);
    switch (this.#fate) {
      case 'answers':
        this.#becomes('answered');
        resolve({ content });
        break;
      case 'reports-failure':
        fails('refused');
        resolve({ content, isError: true });
        break;
      case 'asks-for-input':
        // For a client of an earlier revision the library asks once more, with what it has.
        this.#becomes('refused');
        this.#fate = this.#chance.pick(['answers', 'refuses', 'asks-for-input']);
        resolve({ resultType: 'input_required', inputRequests: {}, requestState: 'state' });
        break;
      case 'refuses':
        fails('refused');
        reject(new ProtocolError(invalidParams, 'no such city'));
        break;
      default:
        fails('broken');
        reject(new Unavailable('The server does not answer.', true));
    }
  }

  #becomes(state: 'answered' | 'refused' | 'broken'): void {
    const isPaid = state === 'answered';
    const usage = this.#counted;
    this.#attempt.state = state;
    if (state === 'refused') return;
    this.#attempt.reported = { usage, isGuess: !isPaid, isWhole: isPaid, seen: 0 };
    if (isPaid) this.#trace.reported = this.#attempt.reported;
  }

  #passes(delayMs: number, label: string): Promise<void> {
    const { schedule } = this.#ground;
    return new Promise((resolve) => schedule.after(delayMs, this.#from.process.life, label, resolve));
  }

  // ---------------------------------------------------------------------------------------------------- the way out

  async #answered({ status, body }: Answer): Promise<void> {
    this.#trace.status = status;
    if (typeof body !== 'string' && !(body instanceof Uint8Array)) for await (const _part of body) await undefined;
    await this.#passes(this.#chance.delay(20), 'tool answer out');
    if (this.#attempt.state === 'answered') this.#trace.firstByte = true;
    this.#end('complete');
  }

  #end(kind: Outcome['kind']): void {
    const { oracle } = this.#ground;
    const { process, node } = this.#from;
    const trace = this.#trace;
    if (!process.life.alive || trace.ended) return;
    const outcome = this.#exchange.aborted?.kind === 'client_left' ? 'client_left' : kind;
    trace.clientLeft = outcome === 'client_left';
    trace.ended = true;
    trace.endedLine = node.disk.writes;
    oracle.ended(trace, outcome, process.host.clock.now());
    if (outcome !== 'client_left') void this.#exchange.readyToEnd();
    void this.#exchange.end({ kind: outcome, status: trace.status, bytesOut: 0, totalMs: 0 });
  }
}

/** The centre of the onion of tools, where each attempt is the plugin's. */
export const forwardTool: Run = (exchange) => {
  if (exchange.get(upstreamRequest).sendOver === undefined) throw new Error('a call of a tool is to be forwarded');
  return centre(exchange);
};

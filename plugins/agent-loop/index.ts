/** Tools of this gateway for any model: the gateway lists them, runs the calls of the model, and goes on until it answers. */
import {
  definePlugin,
  type Exchange,
  type Host,
  type Next,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { caller, keyring } from '../common/domain/accounts.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { batchLine, call, vendorBatch } from '../common/domain/calls.ts';
import { catalog, type Model, type ModelTarget, protocolsOf } from '../common/domain/models.ts';
import { type AskedStores, ownStores } from '../common/domain/stored-files.ts';
import { providers } from '../common/domain/upstreams.ts';
import { keepAliveFrame } from '../common/kit/sse.ts';
import { isToolPriced, ownSearch, toolRuns } from '../common/wire/hosted-tools.ts';
import { answerKeeper, opened } from '../common/wire/protocols.ts';
import { billEndpoint } from './bill.ts';
import { boundsOf, runHeader } from './budget.ts';
import { type LoopConfig, loopSchema } from './config.ts';
import { type Dialect, dialects } from './dialects/index.ts';
import { filesToolOf } from './files/found.ts';
import { type OfferedTool, offer } from './offered.ts';
import { errorOf, Refused, Run } from './run.ts';
import { readSearch } from './search/asked.ts';
import { searchToolOf } from './search/found.ts';
import type { WantedSearch } from './search/nouns.ts';
import { Steps } from './steps.ts';
import type { Wanted } from './wanted.ts';

export default definePlugin<LoopConfig>({
  name: 'agent-loop',
  config: loopSchema,
  services: {
    requires: [keyring],
    optional: [ledgerQueries, answerKeeper, ownSearch, ownStores, catalog, providers],
    provides: [toolRuns],
  },
  requires: [call, opened, caller],
  optional: [batchLine, vendorBatch],
  setup(host, config) {
    const runs = new Runs(host, config);
    host.provide(toolRuns, true);
    const instance: PluginInstance<LoopConfig> = {
      endpoints: [billEndpoint(host)],
      applies: ({ operation, setsOnOpen }) => dialects.has(operation) && setsOnOpen?.includes(opened) === true,
      handle: function agentLoop(exchange, next) {
        const { json } = exchange.get(opened);
        const { tools, mcp_servers: servers, web_search_options: search } = json;
        if (tools === undefined && servers === undefined && search === undefined) return next();
        return runs.handle(exchange, next);
      },
      addresses: { pathPrefixes: ['/v1'] },
      reload: {
        prepare: (changed) => () => {
          runs.config = changed;
        },
      },
    };
    return instance;
  },
});

/** What a request wants of the gateway. */
interface Wants {
  readonly servers: readonly Wanted[];
  readonly search: WantedSearch | undefined;
  readonly files: AskedStores | undefined;
}

class Runs {
  config: LoopConfig;
  readonly #host: Host;
  readonly #counts = new Map<string, number>();

  constructor(host: Host, config: LoopConfig) {
    this.#host = host;
    this.config = config;
  }

  handle(exchange: Exchange, next: Next): Promise<Answer> {
    const dialect = dialects.get(exchange.endpoint.operation)!;
    const { json } = exchange.get(opened);
    const here = { host: exchange.request.headers['host'], anyServer: this.config.any_server };
    const servers = dialect.wanted(json, here);
    if (!exchange.get(call).billable) return next();
    const search = this.#searchOf(exchange, dialect);
    const stores = this.#host.find(ownStores);
    const files = stores && dialect.files?.(json, stores.isOwn);
    if (servers.length === 0 && search === undefined && files === undefined) return next();
    if (exchange.find(batchLine) !== undefined || exchange.find(vendorBatch) !== undefined)
      throw new GatewayError('unsupported', 'Lines of a batch cannot call tools of this gateway.', {
        field: servers[0]?.field ?? search?.field ?? files!.field,
      });
    this.#enter(exchange);
    return this.#run(exchange, dialect, { servers, search, files });
  }

  /** undefined: none is asked for, or the model's vendor searches itself. */
  #searchOf(exchange: Exchange, dialect: Dialect): WantedSearch | undefined {
    const { json } = exchange.get(opened);
    const member = dialect.search(json);
    if (member === undefined || this.#host.find(ownSearch)?.serves(exchange) !== true) return undefined;
    const { model, protocol } = exchange.get(call);
    const entry = this.#host.find(catalog)?.find(model);
    if (entry === undefined) return undefined;
    if (searchesItself(entry, protocol, this.#host) && dialect.hasSearched?.(json) !== true) return undefined;
    return readSearch(exchange.endpoint.operation, member);
  }

  async #run(exchange: Exchange, dialect: Dialect, wants: Wants): Promise<Answer> {
    const { config } = this;
    const { servers } = wants;
    const request = exchange.get(opened);
    const { json } = request;
    const { stream } = exchange.get(call);
    const isArray = stream && dialect.query !== undefined && exchange.request.query.get('alt') !== 'sse';
    const asked = boundsOf(exchange.request.headers[runHeader], config);
    const query = stream ? (dialect.query ?? {}) : {};
    const steps = new Steps({ ...{ host: this.#host, exchange, config, query }, budget: asked.budget });
    const lists = await Promise.all(servers.map((server) => steps.list(server)));
    const offered = offer(servers, lists, dialect.functions(json), {
      most: config.tools,
      searches: await this.#searches(exchange, wants),
    });
    const clientJson = request.clientJson ?? json;
    const talk = dialect.begin({ json, clientJson, offered, id: exchange.id, streams: stream, isArray });
    const most = json['max_tool_calls'];
    const calls = typeof most === 'number' ? Math.min(most, asked.calls) : asked.calls;
    const bounds = { turns: asked.turns, calls };
    const run = new Run({ ...{ steps, talk, offered, config, bounds }, clock: this.#host.clock, streams: stream });
    const keep = this.#host.find(answerKeeper)?.recorder(exchange, request);
    const kept = () => run.end === undefined || keep?.(JSON.stringify(talk.whole(run.end)));
    return stream
      ? streamed(exchange, run, kept, isArray)
      : whole(run, () => JSON.stringify(talk.whole(run.end ?? 'done')), kept);
  }

  async #searches(exchange: Exchange, { search, files }: Wants): Promise<OfferedTool[]> {
    const web = search === undefined ? [] : [searchToolOf(search)];
    if (files === undefined) return web;
    const stores = await this.#host.get(ownStores).open(exchange.get(caller).accountId, files);
    return [...web, filesToolOf({ field: files.field, search: stores })];
  }

  /** 429 beyond the bound. */
  #enter(exchange: Exchange): void {
    const { accountId } = exchange.get(caller);
    const count = this.#counts.get(accountId) ?? 0;
    if (count >= this.config.per_account) {
      const message = `This account has as many runs with tools as it may at once, ${count}; wait for one to end.`;
      throw new GatewayError('rate_limited', message, { code: 'run_concurrency', retryAfterMs: 1_000 });
    }
    this.#counts.set(accountId, count + 1);
    exchange.defer(() => {
      const rest = this.#counts.get(accountId)! - 1;
      if (rest === 0) this.#counts.delete(accountId);
      else this.#counts.set(accountId, rest);
    });
  }
}

/** Whether the model's vendor searches the web, so that the request is left to it. `protocol`: that of the client, in which such a request is relayed as it is. */
function searchesItself(entry: Model, protocol: string, host: Host): boolean {
  if (entry.prices === undefined || !isToolPriced(entry.prices, host.clock.now(), 'web_search')) return false;
  return entry.targets.some((target) => offersSearch(entry, target, protocol, host));
}

function offersSearch({ traits }: Model, target: ModelTarget, client: string, host: Host): boolean {
  const provider = host.find(providers)?.find(target.provider);
  return protocolsOf(target, provider).some((name) => {
    const tools = { ...provider?.dialect?.[name], ...traits, ...target.traits }.hosted_tools;
    return tools === undefined ? name !== 'chat' || client === 'chat' : tools.includes('web_search');
  });
}

async function whole(run: Run, body: () => string, kept: () => unknown): Promise<Answer> {
  try {
    for await (const _ of run.steps(() => {}));
  } catch (error) {
    if (error instanceof Refused) return refusal(error);
    throw error;
  }
  kept();
  return { status: 200, headers: { 'content-type': 'application/json' }, body: body() };
}

/** The head goes out when the first turn was not refused. */
async function streamed(exchange: Exchange, run: Run, kept: () => unknown, isArray: boolean): Promise<Answer> {
  const { protocol } = exchange.get(opened);
  const begun = Promise.withResolvers<void>();
  const frames = run.steps(begun.resolve);
  const first = frames.next();
  try {
    await Promise.race([begun.promise, first]);
  } catch (error) {
    if (error instanceof Refused) return refusal(error);
    throw error;
  }
  const idle = protocol.idleFrame?.() ?? keepAliveFrame;
  const type = isArray ? 'application/json' : 'text/event-stream';
  return {
    ...{ status: 200, headers: { 'content-type': type, 'cache-control': 'no-cache' } },
    body: bytesOf(frames, first, kept),
    ...(isArray ? {} : { idleFrame: () => idle, failed: (error: GatewayError) => brokenStream(exchange, error) }),
  };
}

async function* bytesOf(
  frames: AsyncGenerator<string>,
  first: Promise<IteratorResult<string>>,
  kept: () => unknown,
): AsyncGenerator<Uint8Array> {
  try {
    for (let step = await first; step.done !== true; step = await frames.next())
      if (step.value !== '') yield Buffer.from(step.value);
    kept();
  } catch (error) {
    throw error instanceof Refused ? errorOf(error) : error;
  } finally {
    await frames.return(undefined);
  }
}

function brokenStream(exchange: Exchange, error: GatewayError): Uint8Array {
  const { protocol, call: request } = exchange.get(opened);
  const createdAt = Math.floor(exchange.receivedAt / 1000);
  const about = { exchangeId: exchange.id, call: request, upstreamId: undefined, createdAt };
  return Buffer.from(protocol.streamError(error, { ...about, lastFrame: undefined, shape: undefined }));
}

function refusal({ answer: { status, headers }, body }: Refused): Answer {
  const { 'content-length': _length, 'x-request-id': _id, ...kept } = headers;
  return { status, headers: { ...kept }, body };
}

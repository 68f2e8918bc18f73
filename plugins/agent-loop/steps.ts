/** The steps of a run: each is a request of its own through the gateway's whole chain, with its limits, its hold, its charge and its row. */
import { hash } from 'node:crypto';
import type { DirectAnswer, Exchange, Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Headers } from '../../core/contract/message.ts';
import { isObject, type JsonObject, listOf, tryParse } from '../../core/json/json.ts';
import { caller, keyring } from '../common/domain/accounts.ts';
import { spendGuard, unrecorded } from '../common/domain/calls.ts';
import { formatUsd, zero } from '../common/domain/money.ts';
import { defineEvent, recordEvent } from '../common/domain/timeline.ts';
import { boundedText } from '../common/kit/fetch/bounded-text.ts';
import { FrameReader, parseFrame } from '../common/kit/sse.ts';
import { type NamedServer, namedServer } from '../common/wire/hosted-tools.ts';
import { type RunBounds, runHeader } from './budget.ts';
import type { LoopConfig } from './config.ts';
import { filesDone, filesFailed, filesQuery } from './files/found.ts';
import type { WantedFiles } from './files/nouns.ts';
import { firstCall, stepId } from './ids.ts';
import { type OfferedTool, offeredOf } from './offered.ts';
import { bodyOf, foundIn, queryOf, searchDone, searchPath } from './search/found.ts';
import type { WantedSearch } from './search/nouns.ts';
import type { ToolDone, ToolUse } from './talk.ts';
import { resultOf } from './tool-result.ts';
import type { Wanted } from './wanted.ts';

const turnEvent = defineEvent(
  'agent-loop.turn',
  (number: number, status: number, cost: string) =>
    `turn ${number} of the model was answered with ${status} and cost ${cost} USD`,
);
const callEvent = defineEvent(
  'agent-loop.call',
  (tool: string, end: string, cost: string) => `the tool ${tool} ${end} and cost ${cost} USD`,
);

/** Headers of the client that are about its own request alone. */
const ownHeaders = new Set([
  'content-length',
  'transfer-encoding',
  'accept-encoding',
  'idempotency-key',
  'expect',
  runHeader,
]);
/** Lists of tools are larger than their results. */
const listBytes = 32 * 2 ** 20;

interface StepsOptions {
  readonly host: Host;
  readonly exchange: Exchange;
  readonly config: LoopConfig;
  /** Members of the query that the turns have instead of the client's. */
  readonly query: Readonly<Record<string, string>>;
  readonly budget: RunBounds['budget'];
}

interface StepRequest {
  readonly path: string;
  readonly body: string;
  /** A server elsewhere that it is for. */
  readonly named?: NamedServer | undefined;
}

export class Steps {
  readonly #host: Host;
  readonly #exchange: Exchange;
  readonly #config: LoopConfig;
  readonly #path: string;
  /** What a turn's request has of the client's. */
  readonly #headers: Headers;
  #turns = 0;
  #calls = 0;
  #searches = 0;
  /** Texts of files that the model has read. */
  #texts = 0;
  /** A step was refused because its money is not there. */
  isOutOfMoney = false;
  readonly #budget: RunBounds['budget'];

  constructor({ host, exchange, config, query, budget }: StepsOptions) {
    this.#host = host;
    this.#exchange = exchange;
    this.#config = config;
    this.#budget = budget;
    const { request } = exchange;
    const asked = new URLSearchParams([...request.query].filter(([name]) => name !== 'key'));
    for (const [name, value] of Object.entries(query)) asked.set(name, value);
    this.#path = asked.size === 0 ? request.path : `${request.path}?${asked}`;
    this.#headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !ownHeaders.has(name)));
  }

  get turns(): number {
    return this.#turns;
  }

  get calls(): number {
    return this.#calls;
  }

  /** The next turn of the model. `ended` settles its money and has to be awaited behind its body. */
  async turn(body: JsonObject): Promise<{ readonly answer: DirectAnswer; readonly ended: () => Promise<void> }> {
    const number = ++this.#turns;
    const { answer, cost } = await this.#perform(
      { path: this.#path, body: JSON.stringify(body) },
      number,
      this.#headers,
    );
    const ended = async () => {
      await answer.ended;
      this.#record(turnEvent, [number, answer.status, cost()]);
    };
    return { answer, ended };
  }

  /** The tools of a server that the request wants, as its key may use them. */
  async list(wanted: Wanted): Promise<OfferedTool[]> {
    const words = wanted.words === undefined ? {} : { 'x-gateway-tools': wanted.words };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
    const { answer } = await this.#perform({ path: wanted.path, body, named: wanted.named }, undefined, {
      ...mcpHeaders,
      ...words,
    });
    const reply = await this.#reply(answer, listBytes);
    return offeredOf(wanted, isObject(reply['result']) ? reply['result']['tools'] : undefined);
  }

  /** Never rejects for a tool that fails: the model reads why. */
  async call(use: ToolUse, wanted: Wanted): Promise<ToolDone> {
    if (wanted.search !== undefined) return this.#search(use, wanted.search);
    if (wanted.files !== undefined) return this.#files(use, wanted.files);
    const { path, named } = wanted;
    const number = firstCall + this.#calls++;
    const parsed = use.arguments.trim() === '' ? {} : tryParse(use.arguments);
    if (!isObject(parsed)) return { ...use, output: 'The arguments are no JSON object.', isError: true };
    const params = { name: use.name, arguments: parsed };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const { answer, cost } = await this.#perform({ path, body, named }, number, mcpHeaders);
    const reply = await this.#reply(answer, listBytes);
    if (answer.status === 402) this.isOutOfMoney = true;
    const result = resultOf(reply, this.#config.result);
    this.#record(callEvent, [use.name, result.isError ? 'failed' : 'answered', cost()]);
    return { ...use, ...result };
  }

  async #search(use: ToolUse, wanted: WantedSearch): Promise<ToolDone> {
    const { result: most } = this.#config;
    const asked = queryOf(tryParse(use.arguments), this.#searches >= wanted.most);
    if (asked.error !== undefined) return searchDone(use, asked, most);
    this.#searches++;
    const number = firstCall + this.#calls++;
    const { answer, cost } = await this.#perform({ path: searchPath, body: bodyOf(asked.query, wanted) }, number, {});
    const reply = await this.#reply(answer, listBytes);
    if (answer.status === 402) this.isOutOfMoney = true;
    const done = searchDone(use, foundIn(asked.query, answer.status, reply), most);
    this.#record(callEvent, [use.name, done.isError ? 'failed' : 'answered', cost()]);
    return done;
  }

  async #files(use: ToolUse, { search }: WantedFiles): Promise<ToolDone> {
    const query = filesQuery(use);
    if (query === undefined) return filesFailed(use, '', 'The arguments have no "query" that is a text.');
    const answers: JsonObject[] = [];
    for (const request of search.requests(query)) {
      const { answer, cost } = await this.#perform(request, firstCall + this.#calls++, {});
      answers.push(await this.#reply(answer, listBytes));
      if (answer.status === 402) this.isOutOfMoney = true;
      this.#record(callEvent, [use.name, answer.status === 200 ? 'answered' : 'failed', cost()]);
      if (answer.status !== 200) return filesFailed(use, query, 'The search was not made.');
    }
    const hits = await search.find(answers).catch((error: unknown) => {
      if (error instanceof GatewayError) return undefined;
      throw error;
    });
    if (hits === undefined) return filesFailed(use, query, 'The search was not made.');
    const done = filesDone(use, { query, hits, first: this.#texts + 1 }, this.#config.result);
    this.#texts += done.files!.hits.length;
    return done;
  }

  async #reply(answer: DirectAnswer, mostBytes: number): Promise<JsonObject> {
    const text = await boundedText(answer, mostBytes, () => new Error('the answer of a tool server is too long'));
    await answer.ended;
    const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true;
    const found = isStream ? replyIn(text) : tryParse(text);
    return isObject(found) ? found : {};
  }

  /** `step`: undefined for a request that costs nothing and leaves no row. */
  async #perform({ path, body, named }: StepRequest, step: number | undefined, headers: Headers) {
    const { id, request, signal } = this.#exchange;
    const { keyId } = this.#exchange.get(caller);
    const known = await this.#host.get(keyring).callerOf(keyId, request.remoteAddress, request.headers);
    const budget = this.#budget;
    let made: Exchange | undefined;
    const answer = await this.#host.perform({
      ...{ method: 'POST', path, body: Buffer.from(body), remoteAddress: request.remoteAddress, signal },
      headers: { ...headers, ...this.#keyOf(step), 'content-type': 'application/json' },
      ...(step === undefined ? {} : { id: stepId(id, step) }),
      prepare(exchange) {
        made = exchange;
        exchange.set(caller, budget === undefined ? known : { ...known, budget });
        if (step === undefined) exchange.set(unrecorded, true);
        if (named !== undefined) exchange.set(namedServer, named);
      },
    });
    return { answer, cost: () => formatUsd(made?.find(spendGuard)?.charged?.()?.cost ?? zero) };
  }

  /** A run that is repeated by its key repeats its steps by theirs: what has run is answered again and not charged again. */
  #keyOf(step: number | undefined): Headers {
    const key = this.#exchange.request.headers['idempotency-key'];
    return key === undefined || step === undefined
      ? {}
      : { 'idempotency-key': `run ${hash('sha256', key)} step ${step}` };
  }

  #record<V extends readonly (string | number)[]>(
    kind: Parameters<typeof recordEvent<V>>[2],
    values: readonly [...V],
  ): void {
    recordEvent(this.#exchange, this.#host.clock.now(), kind, values);
  }
}

const mcpHeaders = { accept: 'application/json, text/event-stream' };

/** The reply behind notifications of progress. */
function replyIn(text: string): unknown {
  const found: unknown[] = [];
  const reader = new FrameReader((raw) => void found.push(tryParse(parseFrame(raw)?.data ?? '')));
  reader.feed(Buffer.from(text));
  return listOf(found).findLast((one) => isObject(one) && ('result' in one || 'error' in one));
}

/** The money of a relayed session: held before each response and charged for its usage, one exchange for each response. */
import type { DirectAnswer, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import { isObject, objectOf, tryParseBytes } from '../../../core/json/json.ts';
import { type Caller, caller as callerKey, keyring } from '../../common/domain/accounts.ts';
import { type Call, type Pinned, pinned, usedUp } from '../../common/domain/calls.ts';
import { catalog } from '../../common/domain/models.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { isToolPriced } from '../../common/wire/hosted-tools.ts';
import type { IsPriced } from '../../common/wire/named.ts';
import { type PromptContext, promptRules } from '../../common/wire/prompt-rules.ts';
import { type ClientHead, upgradeFields } from '../connection.ts';
import type { Connections } from '../connections.ts';
import type { Dialect, Metered } from './dialect.ts';
import { errorOf, type RelayStep, ResponseStep, relayStep } from './step.ts';
import type { Message } from './upstream.ts';

export interface RelayTools {
  readonly host: Pick<Host, 'perform' | 'find' | 'clock' | 'log'>;
  readonly connections: Connections;
}

export interface Opening {
  readonly dialect: Dialect;
  readonly head: ClientHead;
  readonly caller: Caller | undefined;
  /** Sent to the upstream before the client's messages. */
  readonly settings?: Buffer | undefined;
  /** Admits the first message where it opens the session; resolves with the one that is sent in its place. */
  readonly admit?: (first: Message) => Promise<Message>;
  /** Wall-clock milliseconds after which no message is taken. */
  readonly expiresAt?: number;
}

/** Tools of the vendor of which runs have a price for this model; without a price list, all. */
export function pricedTools(host: RelayTools['host'], model: string): IsPriced {
  const prices = host.find(catalog)?.find(model)?.prices;
  return (name) => prices === undefined || isToolPriced(prices, host.clock.now(), name);
}

/** A message of the client as the rules for prompts leave it; undefined: this one, unchanged. Throws or rejects with a GatewayError where a rule refuses. */
export function throughRules(
  { host }: RelayTools,
  { caller, head }: Pick<Opening, 'caller' | 'head'>,
  { data, isBinary }: Message,
): Message | undefined | Promise<Message | undefined> {
  const rules = host.find(promptRules);
  if (rules === undefined) return undefined;
  const find = ((key: unknown) => (key === callerKey ? caller : undefined)) as PromptContext['find'];
  const passed = rules.pass(data, { operation: 'realtime', session: head, find });
  const written = (bytes: Uint8Array | undefined) =>
    bytes === undefined ? undefined : { data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), isBinary };
  return passed instanceof Promise ? passed.then(written) : written(passed);
}

/** Tokens that are held beyond the known ones of a prompt. */
const allowedTokens = 1_000;

export class Charges {
  /** Tokens that were added to the conversation since its last response, estimated. */
  added = 0;
  readonly #tools: RelayTools;
  readonly #protocol: string;
  readonly #opening: Opening;
  #model = '';
  /** The target of the session. */
  #pin: Pinned | undefined;
  #step: ResponseStep | undefined;
  #holding: Promise<GatewayError | undefined> | undefined;
  /** Tokens of the next prompt: those of the last one and its answer. */
  #context: Usage = {};
  #hasEnded = false;

  /** `protocol`: its name in metrics. */
  constructor(tools: RelayTools, protocol: string, opening: Opening) {
    this.#tools = tools;
    this.#protocol = protocol;
    this.#opening = opening;
  }

  get isIdle(): boolean {
    return this.#step === undefined && this.#holding === undefined;
  }

  /** Money is held for the next response. */
  get holds(): boolean {
    return this.#step !== undefined;
  }

  /** The call by which the session is admitted. */
  begin(model: string): Call {
    this.#model = model;
    return this.#callOf(model);
  }

  pinTo({ provider, credential, protocol }: Target): void {
    this.#pin = { provider, credential, protocol, field: 'model' };
  }

  /** Holds money for the next response; otherwise why it cannot be held. */
  hold(): Promise<GatewayError | undefined> {
    if (this.#step !== undefined) return Promise.resolve(undefined);
    this.#holding ??= this.#start(this.#model)
      .then(
        async (step) => {
          this.#step = step;
          if (this.#hasEnded) await this.stop(false);
          return undefined;
        },
        (error: unknown) => toGatewayError(error),
      )
      .finally(() => {
        this.#holding = undefined;
      });
    return this.#holding;
  }

  /** Counts tokens of messages; false: the money is not enough for them. */
  observe(tokens: number): boolean {
    return this.#step?.observe(tokens) !== false;
  }

  /** Why it is not enough. */
  get usedUp(): GatewayError {
    return usedUp(this.#step?.guard);
  }

  /** The upstream reports an error, in the member at this path of its message: of the running response. */
  failed(data: Buffer, path: readonly string[]): void {
    let error: unknown = this.#step?.failed === undefined ? undefined : tryParseBytes(data);
    for (const name of path) error = objectOf(error)?.[name];
    if (isObject(error)) this.#step?.failed?.(error);
  }

  /** Charges the usage. Returns the error if no money can be held for the next response. */
  async charge(metered: Metered, data: Buffer, errorAt?: readonly string[]): Promise<GatewayError | undefined> {
    if (await this.#chargeOther(metered, data)) return undefined;
    const refusal = await this.hold();
    const step = this.#step;
    if (step === undefined) return refusal;
    if (errorAt !== undefined) this.failed(data, errorAt);
    this.#context = nextPrompt(metered.usage ?? step.estimate());
    this.added = 0;
    await step.finish(metered, data);
    this.#step = undefined;
    return this.#opening.dialect.isResponding ? this.hold() : undefined;
  }

  /** The session is over. `isBroken`: the upstream has left. */
  async stop(isBroken: boolean): Promise<void> {
    this.#hasEnded = true;
    const step = this.#step;
    this.#step = undefined;
    const hasRun = this.#opening.dialect.isResponding;
    await step?.stop(hasRun, hasRun && isBroken);
  }

  perform(
    step: RelayStep,
    known: Caller | undefined,
    pin: Pinned | undefined,
    signal?: AbortSignal,
  ): Promise<DirectAnswer> {
    const { head, dialect } = this.#opening;
    return this.#tools.host.perform({
      method: 'GET',
      path: dialect.protocol.endpoint,
      headers: head.headers,
      remoteAddress: head.remoteAddress,
      ...(signal === undefined ? {} : { signal }),
      prepare(exchange) {
        exchange.set(relayStep, step);
        if (known !== undefined) exchange.set(callerKey, known);
        if (pin !== undefined) exchange.set(pinned, pin);
      },
    });
  }

  /** Rejects when it is refused; a key may have been revoked since the last one. */
  async #start(model: string, kind?: Call['kind']): Promise<ResponseStep> {
    const { head, caller } = this.#opening;
    const known =
      caller === undefined
        ? undefined
        : await this.#tools.host.find(keyring)?.callerOf(caller.keyId, head.remoteAddress, head.headers);
    const step = new ResponseStep(this.#callOf(model, kind));
    // No abort signal: after the client has left, a response is still read for its usage.
    const answer = await this.perform(step, known, this.#pin);
    if (answer.status !== 200) throw (await errorOf(answer)) ?? new GatewayError('internal', 'The step was refused.');
    step.ended = read(answer);
    this.#tools.connections.countsOf(this.#protocol).turns += 1;
    return step;
  }

  /** A transcription is charged at the price of its own model if the same upstream offers it. */
  async #chargeOther(metered: Metered, data: Buffer): Promise<boolean> {
    const { host } = this.#tools;
    const entry = metered.model === undefined ? undefined : host.find(catalog)?.find(metered.model);
    if (entry?.kind !== 'transcription' || entry.prices === undefined) return false;
    if (!entry.targets.some(({ provider }) => provider === this.#pin?.provider)) return false;
    try {
      const step = await this.#start(entry.id, 'transcription');
      await step.finish(metered, data);
      return true;
    } catch (error) {
      const { head, caller } = this.#opening;
      host.log.warn(
        { ...upgradeFields(head, caller), error, model: entry.id },
        'a transcription is charged at the price of its session',
      );
      return false;
    }
  }

  #callOf(model: string, kind: Call['kind'] = 'realtime'): Call {
    const isOwn = kind === 'realtime';
    return {
      protocol: this.#opening.dialect.protocol.name,
      model,
      stream: true,
      billable: true,
      inputTokens: isOwn ? allowedTokens + Math.ceil(this.added) : allowedTokens,
      maxOutputTokens: undefined,
      choices: 1,
      kind,
      counted: isOwn ? this.#context : {},
      convertsTo: [],
    };
  }
}

/** An answer becomes part of the next prompt. */
function nextPrompt(usage: Usage): Usage {
  const { output = 0, output_audio: spoken = 0, audio: _a, web_search: _searches, call: _calls, ...prompt } = usage;
  return { ...prompt, input: (prompt.input ?? 0) + output, input_audio: (prompt.input_audio ?? 0) + spoken };
}

async function read({ body, ended }: DirectAnswer): Promise<void> {
  try {
    for await (const _ of body);
  } catch {
    // The session has ended and is closed elsewhere.
  }
  await ended;
}

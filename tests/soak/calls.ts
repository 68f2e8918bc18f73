/** The calls of a soak: every client protocol on every upstream protocol, whole and streamed, tasks, faults, and clients that leave. */
import { type DialectName, dialectNames, dialects } from '../end-to-end/dialects.ts';
import { Chance } from '../simulation/chance.ts';
import { cancel, follow, orders, type Result, type Send } from './orders.ts';

/** The shares of the kinds of calls. */
const mix = {
  ...{ whole: 32, stream: 36, left: 6, fault: 5, shaky: 6, repeat: 4 },
  ...{ image: 3, video: 2, shakyVideo: 1, cancel: 3, models: 2 },
};

export const uses = ['plain', 'left', 'faulty', 'shaky'] as const;
type Use = (typeof uses)[number];

/** Models by what is done to their answers: those of `plain` and `shaky` must agree with the vendor's bill to the token. */
export const modelOf = (upstream: string, use: Use) => `${upstream}-${use}`;

/** So long may a call take before the soak calls it lost. */
const maxCallMs = 120_000;

export class Calls {
  readonly #origin: string;
  readonly #keys: readonly string[];
  readonly #chance: Chance;
  #count = 0;

  constructor(origin: string, keys: readonly string[], seed: number) {
    this.#origin = origin;
    this.#keys = keys;
    this.#chance = new Chance(seed);
  }

  /** One call, drawn by its share of the mix. Never throws. */
  async one(): Promise<Result> {
    const chance = this.#chance;
    const key = chance.pick(this.#keys);
    const kinds = Object.keys(mix) as (keyof typeof mix)[];
    const kind = kinds[chance.weighted(Object.values(mix))]!;
    try {
      switch (kind) {
        case 'whole':
        case 'stream':
          return await this.#text(key, kind);
        case 'left':
          return await this.#leave(key);
        case 'fault':
          return await this.#fault(key);
        case 'repeat':
          return await this.#repeat(key);
        case 'shaky':
          return await this.#shaky(key);
        case 'image':
        case 'video':
        case 'shakyVideo':
          return await follow(this.#senderOf(key), kind, orders[kind](this.#prompt('')));
        case 'cancel': {
          const order = orders[chance.pick(['image', 'video', 'shakyVideo', 'shakyVideo'] as const)];
          return await cancel(this.#senderOf(key), chance, order(this.#prompt('')));
        }
        default: {
          const { status } = await this.#fetch(key, '/v1/models', {});
          return { kind, wrong: status === 200 ? undefined : `status ${status}` };
        }
      }
    } catch (error) {
      return { kind, wrong: String(error) };
    }
  }

  #prompt(directive: string): string {
    return `soak ${this.#count++} ${'word '.repeat(this.#chance.below(120))}${directive}`;
  }

  async #send(
    key: string,
    dialect: DialectName,
    model: string,
    directive: string,
    stream: boolean,
    init: RequestInit = {},
  ) {
    const { path, body, key: headers } = dialects[dialect];
    const question = { model, prompt: this.#prompt(directive), stream };
    return await fetch(this.#origin + path(question), {
      method: 'POST',
      signal: AbortSignal.timeout(maxCallMs),
      ...init,
      headers: { 'content-type': 'application/json', ...headers(key), ...(init.headers as object) },
      body: JSON.stringify(body(question)),
    });
  }

  async #text(key: string, kind: 'whole' | 'stream'): Promise<Result> {
    const chance = this.#chance;
    const dialect = chance.pick(dialectNames);
    const model = modelOf(chance.pick(dialectNames), 'plain');
    const isStream = kind === 'stream';
    const directive = `[[sandbox: tokens=${chance.between(5, 300)}${isStream ? ` chunk_delay=${chance.between(1, 15)}ms` : ''}]]`;
    const answer = await this.#send(key, dialect, model, directive, isStream);
    const text = await answer.text();
    const name = `${dialect} on ${model}`;
    if (answer.status !== 200) return { kind, wrong: `${name}: status ${answer.status}: ${text.slice(0, 200)}` };
    const { terminal, streamError } = dialects[dialect];
    if (isStream && (!terminal.test(text) || streamError.test(text)))
      return { kind, wrong: `${name}: the stream broke off` };
    return { kind, requestId: answer.headers.get('x-request-id') ?? undefined };
  }

  /** Hangs up in mid-stream. */
  async #leave(key: string): Promise<Result> {
    const model = modelOf(this.#chance.pick(dialectNames), 'left');
    const gone = new AbortController();
    const directive = '[[sandbox: tokens=200 chunk_delay=10ms]]';
    const answer = await this.#send(key, this.#chance.pick(dialectNames), model, directive, true, {
      signal: gone.signal,
    });
    const reader = answer.body!.getReader();
    for (let reads = this.#chance.below(5); reads >= 0; reads--) await reader.read();
    gone.abort();
    await reader.read().catch(() => {});
    return { kind: 'left', wrong: answer.status === 200 ? undefined : `status ${answer.status}` };
  }

  /** A vendor that refuses, or breaks off: an error in the client's protocol, and nothing else. */
  async #fault(key: string): Promise<Result> {
    const chance = this.#chance;
    const dialect = chance.pick(dialectNames);
    const fault = chance.pick(['status=400', 'cut_after=3', 'mid_error', 'no_terminal']);
    const isStream = fault !== 'status=400';
    const model = modelOf(chance.pick(dialectNames), 'faulty');
    const answer = await this.#send(key, dialect, model, `[[sandbox: tokens=60 ${fault}]]`, isStream);
    const text = await answer.text().catch(() => '');
    const isError = answer.status >= 400 && text.startsWith('{');
    const isBroken = answer.status === 200 && isStream;
    return { kind: 'fault', wrong: isError || isBroken ? undefined : `${dialect}, ${fault}: status ${answer.status}` };
  }

  /**
   * A vendor that now and then refuses, fails or hangs up: the answer is whole from another, or an error of the client's protocol
   * and free.
   */
  async #shaky(key: string): Promise<Result> {
    const chance = this.#chance;
    const dialect = chance.pick(dialectNames);
    const isStream = chance.oneIn(2);
    const model = modelOf(chance.pick(dialectNames), 'shaky');
    const answer = await this.#send(key, dialect, model, `[[sandbox: tokens=${chance.between(5, 100)}]]`, isStream);
    const text = await answer.text();
    if (answer.status >= 429 && text.startsWith('{')) return { kind: 'shaky, refused' };
    const isWhole = answer.status === 200 && (!isStream || dialects[dialect].terminal.test(text));
    if (!isWhole)
      return { kind: 'shaky', wrong: `${dialect} on ${model}: status ${answer.status}: ${text.slice(-200)}` };
    return { kind: 'shaky', requestId: answer.headers.get('x-request-id') ?? undefined };
  }

  #senderOf(key: string): Send {
    return (path, init) => this.#fetch(key, path, init);
  }

  /** Two requests of one Idempotency-Key: one run, one charge, one answer. */
  async #repeat(key: string): Promise<Result> {
    const idempotencyKey = `soak-${this.#count}-${this.#chance.next()}`;
    const body = JSON.stringify({
      model: modelOf('chat', 'plain'),
      messages: [{ role: 'user', content: this.#prompt('') }],
    });
    const send = () =>
      this.#fetch(key, '/v1/chat/completions', { body, headers: { 'idempotency-key': idempotencyKey } });
    const first = await send();
    const second = await send();
    const isSame = first.status === 200 && second.status === 200 && first.text === second.text;
    return {
      kind: 'repeat',
      wrong: isSame ? undefined : `${first.status}, then ${second.status}`,
      requestId: isSame ? first.id : undefined,
    };
  }

  async #fetch(
    key: string,
    path: string,
    { method, body, headers }: { method?: string; body?: string; headers?: Record<string, string> },
  ) {
    const answer = await fetch(this.#origin + path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      signal: AbortSignal.timeout(maxCallMs),
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body }),
    });
    return { status: answer.status, text: await answer.text(), id: answer.headers.get('x-request-id') ?? undefined };
  }
}

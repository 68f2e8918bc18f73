/**
 * The known set: about 160 calls of every kind by three people around the midnights of two time zones, with every kind of movement of money.
 * What was done is kept as it was done, with what the client's own answers say.
 */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { ledger } from '../../../../plugins/common/domain/ledger.ts';
import { money } from '../../../../plugins/common/domain/money.ts';
import { until } from '../../../helpers/until.ts';
import type { Browser } from '../browser.ts';
import { clientOf, operatorOf, startDemo, type TestConsole } from '../start-console.ts';
import { nano as dollars, ownCosts, type Units, unitsIn } from './prices.ts';

export const zones = ['Europe/Berlin', 'Asia/Kolkata'] as const;
export type Zone = (typeof zones)[number];
export const minute = 60_000;
const today = Math.floor(Date.now() / 86_400_000) * 86_400_000;
/** Before and behind the midnights of both zones. */
export const phases = [18 * 60 + 20, 18 * 60 + 40, 22 * 60 + 50, 23 * 60 + 10].map((at) => today + at * minute);
export const start = phases[0]! - 10 * minute;
const more = `
plans:
  offers:
    free: { price: 0, grant: { amount: 1, every: month } }
    bare: { price: 0 }
    saver: { price: 5, grant: { amount: 8, every: month }, multiplier: 1.2 }
models: ${JSON.stringify(Object.fromEntries(Object.entries(ownCosts).map(([id, cost]) => [id, { cost }])))}
`;

export type Result = 'ok' | 'client_error' | 'upstream_error' | 'left';

/** A call that was made. */
export interface Made {
  readonly at: number;
  readonly account: string;
  readonly key: string;
  readonly model: string;
  readonly path: string;
  readonly result: Result;
  /** Refused before serving: a wrong key, or a model that does not exist. */
  readonly isNoise: boolean;
  /** The code of the client's mistake. */
  readonly cause: string;
  readonly id: string;
  /** undefined: the client's answer does not say; null: nothing may be charged. */
  readonly units: Units | undefined | null;
  readonly ratio: string;
}

/** When money ends that does not expire. */
export const undated = Number.MAX_SAFE_INTEGER;

/** Money that came, or that was taken by something other than a call. */
export interface Move {
  readonly at: number;
  readonly account: string;
  readonly name: string;
  readonly amount: bigint;
  /** For grants of plans a number that only orders them. */
  readonly expires: number;
}

export class Person {
  readonly email: string;
  browser!: Browser;
  accountId = '';
  ratio = '1';
  readonly keys = new Map<string, string>();

  constructor(name: string) {
    this.email = `${name}@example.test`;
  }

  async enter(testbed: TestConsole): Promise<void> {
    this.browser = await clientOf(testbed, this.email);
    this.accountId = (await this.browser.send('/me')).json.account.id;
  }

  async key(name: string, terms: object = {}): Promise<void> {
    const { status, json, text } = await this.browser.send('/keys', { body: { name, ...terms } });
    assert.equal(status, 200, text);
    this.keys.set(name, json.key);
  }
}

interface Ask {
  readonly model: string;
  readonly body?: object;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  /** Its protocol, where the answer says what was used. */
  readonly units?: keyof typeof unitsIn | Units;
  readonly result?: Result;
  readonly isNoise?: boolean;
  readonly cause?: string;
  /** Refused before its key or its model is known. */
  readonly isUnknown?: boolean;
  /** The client leaves after the first bytes. */
  readonly isLeft?: boolean;
}

const mini = 'gpt-5.4-mini';
const sonnet = 'claude-sonnet-5';
const gpt = 'gpt-5.5';
const once = () => ({ 'idempotency-key': crypto.randomUUID() });
const said = (content: string) => [{ role: 'user', content }];
const chat = (content: string, more: object = {}): Ask => ({
  model: mini,
  body: { model: mini, messages: said(content), ...more },
  units: 'chat',
});
const stream = { stream: true, stream_options: { include_usage: true } };

export class KnownSet {
  readonly testbed: TestConsole;
  readonly made: Made[] = [];
  readonly moves: Move[] = [];
  batchBytes = 0;
  taggedId = '';
  readonly ada = new Person('ada');
  readonly bob = new Person('bob');
  readonly cem = new Person('cem');
  boss!: Browser;
  now = phases[0]!;

  private constructor(testbed: TestConsole) {
    this.testbed = testbed;
  }

  /** The wall clock is set by hand from here on. */
  static async play(): Promise<KnownSet> {
    mock.timers.enable({ apis: ['Date'], now: phases[0]! });
    const known = new KnownSet(await startDemo('demo', more));
    known.boss = await operatorOf(known.testbed);
    for (const person of [known.ada, known.bob, known.cem]) await person.enter(known.testbed);
    await known.#run();
    return known;
  }

  tick(to = this.now + 997): void {
    this.now = to;
    mock.timers.setTime(to);
  }

  move({ accountId: account }: Person, name: string, amount: bigint, expires = undated): void {
    this.moves.push({ at: this.now, account, name, amount, expires });
  }

  async change(path: string, body: object): Promise<void> {
    const { status, text } = await this.boss.send(path, { body: { reason: 'test', ...body }, headers: once() });
    assert.equal(status, 200, text);
  }

  async stop(): Promise<void> {
    await this.testbed.stop();
    mock.timers.reset();
  }

  async #run(): Promise<void> {
    const { ada, bob } = this;
    const service = this.testbed.gateway.find(ledger)!;
    await ada.key('laptop', { project: 'web', tags: ['team=search', 'env'] });
    await bob.key('server');
    for (const person of [ada, bob]) this.move(person, 'plan free', dollars('1'), undated - 2);
    const promotion = { kind: 'promotion', reason: 'spring', reference: 'spring' };
    await service.credit(ada.accountId, money(dollars('0.7')), { ...promotion, expiresAt: phases[1]! + 5 * minute });
    this.move(ada, 'spring', dollars('0.7'), phases[1]! + 5 * minute);
    await this.#phase(ada, 3);
    this.tick(phases[1]);
    const paid = { kind: 'top-up', reason: 'payment', reference: 'stripe:cs_1' };
    await service.credit(ada.accountId, money(dollars('10')), paid);
    this.move(ada, 'payment', dollars('10'));
    await this.change(`/admin/accounts/${bob.accountId}/credit`, { amount: '30', reason: 'an invoice' });
    this.move(bob, 'an invoice', dollars('30'));
    const gift = { kind: 'balance', amount: '2.5' };
    const { codes } = (await this.boss.send('/admin/codes', { body: { gift, count: 1, batch: 'spring' } })).json;
    await bob.browser.send('/wallet/redeem', { body: { code: codes[0] } });
    this.move(bob, 'code', dollars('2.5'));
    await this.#phase(bob, 3);
    await this.#phase(ada, 2);
    this.tick(phases[2]);
    const bought = await ada.browser.send('/wallet/plans/saver', { method: 'POST', headers: once() });
    assert.equal(bought.status, 200);
    ada.ratio = '1.2';
    this.move(ada, 'saver', dollars('-5'));
    this.move(ada, 'plan saver', dollars('8'), undated - 1);
    await this.#phase(ada, 3);
    await this.#bounds();
    await this.change(`/admin/accounts/${bob.accountId}/debit`, { amount: '0.25', reason: 'a correction' });
    this.move(bob, 'a correction', dollars('-0.25'));
    this.tick(phases[3]);
    await this.#phase(bob, 3);
    await this.#media(bob);
    await this.#phase(ada, 2);
    await this.#batch(ada);
  }

  /** The same calls in each phase, by both people. */
  async #phase(person: Person, times: number): Promise<void> {
    const system = [{ type: 'text', text: 'A long rule. '.repeat(500), cache_control: { type: 'ephemeral' } }];
    for (let nth = 0; nth < times; nth++) {
      await this.#call(person, chat(`Hello number ${nth}`));
      await this.#call(person, {
        ...{ model: mini, path: '/v1/responses', units: 'responses' },
        body: { model: mini, input: `Say ${nth}` },
      });
      await this.#call(person, {
        ...{ model: sonnet, path: '/v1/messages', units: 'messages' },
        body: { model: sonnet, max_tokens: 50, system, messages: said(`Question ${nth}`) },
      });
      await this.#call(person, {
        ...{ model: gpt, path: `/v1beta/models/${gpt}:generateContent`, units: 'generate-content' },
        body: { contents: [{ role: 'user', parts: [{ text: `${nth}` }] }] },
      });
    }
    await this.#call(person, chat('A stream', stream));
    await this.#call(person, {
      ...{ model: 'text-embedding-3-small', path: '/v1/embeddings', units: 'embeddings' },
      body: { model: 'text-embedding-3-small', input: 'words' },
    });
    await this.#faults(person);
  }

  async #faults(person: Person): Promise<void> {
    const { units: _, ...cut } = chat('[[sandbox: cut_after=2]] A stream that breaks', stream);
    await this.#call(person, { ...cut, result: 'upstream_error' });
    const broken = chat(`[[sandbox: status=500]] ${'A long prompt. '.repeat(200)}`);
    await this.#call(person, { ...broken, result: 'upstream_error' });
    await this.#call(person, { ...chat('[[sandbox: status=400]] No'), result: 'client_error' });
    const unknown = { ...chat('Hi'), model: 'no-such-model', body: { model: 'no-such-model', messages: said('Hi') } };
    await this.#call(person, { ...unknown, result: 'client_error', isNoise: true, cause: 'model_not_found' });
    const headers = { authorization: 'Bearer sk-wrong' };
    await this.#call(person, {
      ...chat('Hi'),
      headers,
      result: 'client_error',
      isNoise: true,
      cause: 'invalid_api_key',
      isUnknown: true,
    });
    const { units: __, ...slow } = chat('[[sandbox: chunks=12 chunk_delay=20ms]] A stream that is left', stream);
    await this.#call(person, { ...slow, result: 'left', isLeft: true });
  }

  /** A limit, a cap, an empty balance, tags. */
  async #bounds(): Promise<void> {
    const { ada, cem } = this;
    await ada.key('slow', { limits: { rpm: 1 } });
    await this.#call(ada, chat('One a minute'), 'slow');
    await this.#call(ada, { ...chat('And another one'), result: 'client_error', cause: 'rpm' }, 'slow');
    await ada.key('capped', { cap: { amount: '0.03', every: 'day' } });
    await this.#call(ada, chat('[[sandbox: tokens=4000]] A long answer', { max_tokens: 4_000 }), 'capped');
    await this.#call(
      ada,
      { ...chat('Too much', { max_tokens: 4_000 }), result: 'client_error', cause: 'key_cap_reached' },
      'capped',
    );
    const headers = { 'x-gateway-tags': 'env=prod' };
    await this.#call(ada, { ...chat('For production'), headers });
    this.taggedId = this.made.at(-1)!.id;
    await this.#call(ada, {
      ...chat('For whom?'),
      cause: 'invalid_tags',
      isUnknown: true,
      headers: { 'x-gateway-tags': 'colour=red' },
      result: 'client_error',
    });
    await cem.key('empty');
    await this.change(`/admin/accounts/${cem.accountId}/plan`, { plan: 'bare' });
    await this.#call(cem, { ...chat('Hello?'), result: 'client_error', cause: 'insufficient_balance' });
  }

  async #media(person: Person): Promise<void> {
    const words = 'Read this aloud, please.';
    for (const input of [words, `${words} ${words}`])
      await this.#call(person, {
        ...{ model: 'tts-1', path: '/v1/audio/speech', units: { character: input.length } },
        body: { model: 'tts-1', voice: 'alloy', input },
      });
    for (const query of ['ships', 'lighthouses'])
      await this.#call(person, {
        ...{ model: 'rerank-v3.5', path: '/v1/rerank', units: { search: 1 } },
        body: { model: 'rerank-v3.5', query, documents: ['a ship', 'a tower'] },
      });
    const image = (prompt: string): Ask => ({
      ...{ model: 'grok-imagine-image', path: '/v1/images/generations', units: { image: 1 } },
      body: { model: 'grok-imagine-image', prompt, response_format: 'b64_json' },
    });
    for (const prompt of ['a paper lighthouse', 'a paper ship']) await this.#call(person, image(prompt));
    await this.#call(person, {
      ...image('[[sandbox: moderated]] a failed ship'),
      result: 'client_error',
      cause: 'content_policy',
    });
  }

  async #batch(person: Person): Promise<void> {
    const lines = Array.from({ length: 5 }, (_, nth) => {
      const body = { model: mini, messages: said(`Line ${nth}`) };
      return JSON.stringify({ custom_id: `${nth}`, method: 'POST', url: '/v1/chat/completions', body });
    });
    const authorization = `Bearer ${person.keys.get('laptop')}`;
    const form = new FormData();
    this.batchBytes = Buffer.byteLength(lines.join('\n'));
    form.set('purpose', 'batch');
    form.set('file', new Blob([lines.join('\n')]), 'lines.jsonl');
    const send = async (path: string, body?: FormData | string) => {
      const headers = { authorization, ...(typeof body === 'string' && { 'content-type': 'application/json' }) };
      return fetch(this.testbed.origin + path, { headers, ...(body !== undefined && { method: 'POST', body }) });
    };
    const file = (await (await send('/v1/files', form)).json()) as { id: string };
    const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' };
    const { id } = (await (await send('/v1/batches', JSON.stringify(order))).json()) as { id: string };
    const ended = await until('the batch has ended', async () => {
      const batch = (await (await send(`/v1/batches/${id}`)).json()) as { status: string; output_file_id: string };
      return batch.status === 'completed' ? batch : undefined;
    });
    const output = await (await send(`/v1/files/${ended.output_file_id}/content`)).text();
    for (const line of output.trimEnd().split('\n')) {
      const { response } = JSON.parse(line) as { response: { request_id: string; body: object } };
      this.#note(
        person,
        'laptop',
        { ...chat(''), path: 'batch' },
        response.request_id,
        unitsIn['chat']!(response.body as never),
      );
    }
  }

  async #call(person: Person, ask: Ask, name = [...person.keys.keys()][0]!): Promise<void> {
    const { path = '/v1/chat/completions', result = 'ok', units, isLeft = false } = ask;
    this.tick();
    const left = new AbortController();
    const answer = await fetch(this.testbed.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${person.keys.get(name)}`, 'content-type': 'application/json', ...ask.headers },
      body: JSON.stringify(ask.body),
      signal: left.signal,
    });
    const id = answer.headers.get('x-request-id')!;
    if (isLeft) {
      await answer.body!.getReader().read();
      left.abort();
      this.#note(person, name, ask, id, undefined);
      // It is charged when the vendor's answer has ended, and belongs to the day of that.
      await until('the call is charged', async () => (await person.browser.send(`/usage/${id}`)).json?.charge);
      return;
    }
    // A stream that breaks off has no end to read.
    const text = await answer.text().catch(() => '');
    assert.equal(answer.status < 400, result === 'ok' || units === undefined, `${ask.model}: ${answer.status} ${text}`);
    const used = typeof units === 'string' ? () => usedIn(units, text) : () => units;
    this.#note(person, name, ask, id, answer.status < 400 ? used() : null);
  }

  #note(person: Person, key: string, ask: Ask, id: string, units: Made['units']): void {
    const { model, path = '/v1/chat/completions', result = 'ok', isNoise = false, cause = 'invalid_request' } = ask;
    const { accountId: account, ratio } = person;
    const known = ask.isUnknown ? { account: '', key: '', model: '' } : { account, key, model };
    this.made.push({ at: this.now, ...known, path, result, isNoise, cause, id, units, ratio });
  }
}

/** What a whole answer says it used, or the last event of a stream. */
function usedIn(protocol: string, text: string): Units {
  const last = text.startsWith('data:')
    ? text
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .at(-1)!
        .slice('data: '.length)
    : text;
  return unitsIn[protocol]!(JSON.parse(last));
}

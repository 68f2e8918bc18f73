/** All that clients do with a fleet, each kind in its turn: calls in four protocols, images, videos, batches, files, money, keys. */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { type DialectName, dialectNames, dialects } from '../end-to-end/dialects.ts';
import { png } from '../plugins/task-store/orders.ts';
import { type Answer, type Answers, untilAnswered } from './answers.ts';
import { film, picture, texts } from './stage.ts';

/** So long may it take until something that was ordered has ended: longer than the longest outage. */
const patienceMs = 180_000;
export const pausedKind = 'an account that had paused';
const films = '/v1/contents/generations/tasks';
const isSettled = ({ status }: Answer) => status === 200 || (status >= 400 && status < 500);

export interface Callers {
  /** Keys of accounts with money. */
  readonly keys: readonly string[];
  /** Keys of accounts that call while the database is away, and at no other time. */
  readonly paused: readonly string[];
  /** The key of an account whose every call has an Idempotency-Key. */
  readonly keyed: string;
  /** Session of a person who is signed in at the console, with an account of their own. */
  readonly cookie: string;
  /** Codes that no one has redeemed. */
  readonly codes: readonly string[];
}

const messages = [{ role: 'user', content: 'After a pause [[sandbox: tokens=20]]' }];
export const pausedCall = { model: texts[1], messages };

/** Each kind as often as it stands here. */
const deck = [
  ...['whole', 'stream', 'whole', 'stream', 'keyed', 'stream', 'file', 'whole', 'stream', 'balance', 'image'],
  ...['whole', 'stream', 'wallet', 'whole', 'stream', 'keyed', 'redeem', 'whole', 'stream', 'video', 'key'],
  ...['whole', 'stream', 'batch'],
] as (keyof Operations)[];

export class Operations {
  begun = 0;
  /** What must never be: something was acknowledged, and is lost or another thing. */
  readonly wrong: string[] = [];
  readonly keysSent = new Set<string>();
  readonly redeemed: string[] = [];
  readonly tasks = new Set<string>();
  readonly batches = new Set<string>();
  readonly #answers: Answers;
  readonly #callers: Callers;
  #texts = 0;
  /** Calls of accounts that had paused. */
  readonly awake = { requested: 0, served: 0 };

  constructor(answers: Answers, callers: Callers) {
    this.#answers = answers;
    this.#callers = callers;
  }

  /** The next operation, to its end. */
  async next(): Promise<void> {
    const kind = deck[this.begun++ % deck.length]!;
    await (this[kind] as () => Promise<void>).call(this);
  }

  async whole(): Promise<void> {
    await this.#text(this.#key(), false);
  }

  async stream(): Promise<void> {
    await this.#text(this.#key(), true);
  }

  /** Asks until it is answered, and is charged once. */
  async keyed(): Promise<void> {
    const idempotencyKey = randomUUID();
    this.keysSent.add(idempotencyKey);
    const turn = this.#texts++;
    const send = () => this.#textOf(this.#callers.keyed, turn, false, { 'idempotency-key': idempotencyKey });
    const isLost = ({ text }: Answer) => text.includes('"idempotency_answer_lost"');
    const answer = await untilAnswered(send, (answer) => answer.status === 200 || isLost(answer), patienceMs);
    if (answer === undefined) this.wrong.push(`the call with the Idempotency-Key ${idempotencyKey} was never answered`);
  }

  async image(): Promise<void> {
    const answer = await this.#json('image', this.#key(), '/v1/images/generations', {
      ...{ model: picture, prompt: `A lighthouse, number ${this.begun}`, response_format: 'b64_json' },
    });
    this.#answers.note('image', answer);
  }

  async video(): Promise<void> {
    const key = this.#key();
    const text = `Waves, number ${this.begun} [[sandbox: takes=${randomInt(300, 3_000)}ms]]`;
    const reference = {
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${png}` },
      role: 'reference_image',
    };
    const content = [{ type: 'text', text }, reference];
    const placed = await this.#json('video, order', key, films, { model: film, content, duration: randomInt(1, 4) });
    if (placed.status !== 200) return;
    const { id } = JSON.parse(placed.text) as { id: string };
    this.tasks.add(id);
    const look = () => this.#get('video, look', key, `${films}/${id}`);
    const isEnd = ({ status, text }: Answer) => status === 404 || (status === 200 && /"(succeeded|failed)"/.test(text));
    const ended = await untilAnswered(look, isEnd, patienceMs);
    if (ended?.status !== 200)
      return void this.wrong.push(`the task ${id} ${ended === undefined ? 'has not ended' : 'is gone'}`);
    const { content: made } = JSON.parse(ended.text) as { content?: { video_url: string } };
    if (made === undefined) return void this.wrong.push(`the task ${id} has failed: ${ended.text.slice(0, 200)}`);
    const { pathname, search } = new URL(made.video_url);
    await this.#fetchAll(
      'video, file',
      undefined,
      pathname + search,
      (bytes) => bytes.toString('latin1', 4, 8) === 'ftyp',
    );
  }

  async batch(): Promise<void> {
    const key = this.#key();
    const url = '/v1/chat/completions';
    const lines = Array.from({ length: randomInt(2, 8) }, (_, index) => {
      const messages = [{ role: 'user', content: `A line [[sandbox: tokens=${randomInt(5, 40)}]]` }];
      const body = { model: texts[index % texts.length], messages };
      return JSON.stringify({ custom_id: `line-${index}`, method: 'POST', url, body });
    });
    const input = await this.#upload('batch, input', key, 'batch', Buffer.from(lines.join('\n')));
    if (input === undefined) return;
    const order = { input_file_id: input, endpoint: url, completion_window: '24h' };
    const placed = await this.#json('batch, order', key, '/v1/batches', order);
    if (placed.status !== 200) return;
    const { id } = JSON.parse(placed.text) as { id: string };
    this.batches.add(id);
    const look = () => this.#get('batch, look', key, `/v1/batches/${id}`);
    const isEnd = ({ status, text }: Answer) =>
      status === 404 || (status === 200 && /"status":\s*"(completed|failed|expired)"/.test(text));
    const ended = await untilAnswered(look, isEnd, patienceMs, 1_000);
    if (ended?.status !== 200)
      return void this.wrong.push(`the batch ${id} ${ended === undefined ? 'has not ended' : 'is gone'}`);
    const { output_file_id: output, request_counts: counts } = JSON.parse(ended.text) as {
      output_file_id?: string | null;
      request_counts: { completed: number; failed: number };
    };
    if (counts.completed + counts.failed !== lines.length) this.wrong.push(`the batch ${id} has lines without an end`);
    if (typeof output !== 'string') return;
    const count = counts.completed;
    const isWhole = (bytes: Buffer) => bytes.toString().trimEnd().split('\n').length === count;
    const file = await this.#fetchAll('batch, output', key, `/v1/files/${output}/content`, isWhole);
    this.#noteLines(file?.text ?? '');
  }

  async file(): Promise<void> {
    const key = this.#key();
    const bytes = randomBytes(20_000);
    const id = await this.#upload('file, up', key, 'user_data', bytes);
    if (id === undefined) return;
    await this.#fetchAll('file, down', key, `/v1/files/${id}/content`, (read) => read.equals(bytes));
    await this.#send('file, delete', key, `/v1/files/${id}`, { method: 'DELETE' });
  }

  async balance(): Promise<void> {
    await this.#get('balance', this.#key(), '/v1/balance');
  }

  async wallet(): Promise<void> {
    await this.#console('wallet', '/wallet');
  }

  /** Money in: a code, tried until it is taken. */
  async redeem(): Promise<void> {
    const code = this.#callers.codes[this.redeemed.length];
    if (code === undefined) return;
    this.redeemed.push(code);
    const redeem = () => this.#console('redeem a code', '/wallet/redeem', { code }, [409]);
    const taken = await untilAnswered(redeem, (answer) => answer.status === 200 || answer.status === 409, patienceMs);
    if (taken === undefined) this.wrong.push(`the code ${code} was never taken`);
  }

  /** Calls of each account in its turn. */
  async paused(): Promise<void> {
    const { paused } = this.#callers;
    const key = paused[this.awake.requested++ % paused.length]!;
    const answer = await this.#json(pausedKind, key, '/v1/chat/completions', pausedCall);
    if (answer.status === 200) this.awake.served += 1;
    this.#answers.note(pausedKind, answer);
  }

  /** A key is made, used at whichever gateway comes next, and revoked. */
  async key(): Promise<void> {
    const made = await this.#console('key, made', '/keys', { name: `drive ${this.begun}` });
    if (made.status >= 300 || made.status === 0) return;
    const { key, id } = readKey(made.text);
    await this.#text(key, false);
    await this.#console('key, revoked', `/keys/${id}`, undefined, [], 'DELETE');
  }

  /** Each protocol of clients on each model. */
  #text(key: string, stream: boolean): Promise<Answer> {
    return this.#textOf(key, this.#texts++, stream);
  }

  async #textOf(key: string, turn: number, stream: boolean, headers: Record<string, string> = {}): Promise<Answer> {
    const dialect = dialectNames[turn % dialectNames.length]!;
    const model = texts[Math.floor(turn / dialectNames.length) % texts.length]!;
    // One in eight is long enough for a drain to wait for it.
    const pace = !stream
      ? ''
      : randomInt(8) === 0
        ? ' chunks=100 chunk_delay=40ms'
        : ` chunk_delay=${randomInt(1, 15)}ms`;
    const prompt = `Call ${turn} [[sandbox: tokens=${100 + (turn % 100)}${pace}]]`;
    const question = { model, prompt, stream };
    const { path, body, key: keyHeaders, terminal, streamError } = dialects[dialect];
    const kind = `${nameOf(dialect)}${stream ? ', streamed' : ''}${headers['idempotency-key'] === undefined ? '' : ', keyed'}`;
    const answer = await this.#answers.send(kind, path(question), {
      headers: { ...keyHeaders(key), ...headers },
      body: JSON.stringify(body(question)),
      ...(stream ? { terminal, streamError } : {}),
    });
    this.#answers.note(kind, answer);
    return answer;
  }

  async #upload(kind: string, key: string, purpose: string, bytes: Buffer): Promise<string | undefined> {
    const form = new FormData();
    form.set('purpose', purpose);
    form.set('file', new Blob([new Uint8Array(bytes)]), 'file.bin');
    const answer = await this.#send(kind, key, '/v1/files', { body: form });
    return answer.status === 200 ? (JSON.parse(answer.text) as { id: string }).id : undefined;
  }

  /** Asks for an acknowledged object until it is there, and checks that it is whole. */
  async #fetchAll(
    kind: string,
    key: string | undefined,
    path: string,
    isWhole: (bytes: Buffer) => boolean,
  ): Promise<Answer | undefined> {
    const requestOf = () => this.#send(kind, key, path, {});
    const answer = await untilAnswered(requestOf, isSettled, patienceMs);
    if (answer?.status !== 200)
      this.wrong.push(`${kind}: ${path} is lost: ${answer?.status} ${answer?.text.slice(0, 200)}`);
    else if (!isWhole(answer.bytes))
      this.wrong.push(`${kind}: ${path} is not what was kept: ${answer.text.slice(0, 200)}`);
    return answer;
  }

  #noteLines(output: string): void {
    for (const line of output.trimEnd().split('\n')) {
      if (line === '') continue;
      const { response } = JSON.parse(line) as { response: { request_id: string; status_code: number } };
      if (response.status_code === 200) this.#answers.charged.set(response.request_id, 'a line of a batch');
    }
  }

  #console(
    kind: string,
    path: string,
    body?: object,
    expected: readonly number[] = [],
    method?: string,
  ): Promise<Answer> {
    return this.#answers.send(kind, `/console/api${path}`, {
      headers: { cookie: this.#callers.cookie, 'idempotency-key': randomUUID() },
      isPage: true,
      expected,
      ...(method === undefined ? {} : { method }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  #get(kind: string, key: string, path: string): Promise<Answer> {
    return this.#send(kind, key, path, {});
  }

  #json(kind: string, key: string, path: string, body: object): Promise<Answer> {
    return this.#send(kind, key, path, { body: JSON.stringify(body) });
  }

  #send(
    kind: string,
    key: string | undefined,
    path: string,
    requested: { method?: string; body?: string | FormData },
  ): Promise<Answer> {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    return this.#answers.send(kind, path, { ...requested, headers });
  }

  #key(): string {
    return this.#callers.keys[this.begun % this.#callers.keys.length]!;
  }
}

const nameOf = (dialect: DialectName) => (dialect === 'gemini' ? 'generate-content' : dialect);

function readKey(text: string): { key: string; id: string } {
  const made = JSON.parse(text) as { key: string; id?: string; row?: { id: string } };
  return { key: made.key, id: made.id ?? made.row!.id };
}

/** Plays one cell of the matrix for real: a client of one protocol, the gateway, a vendor of another. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { streamOracles, wholeOracles } from '../helpers/oracles.ts';
import type { Script } from '../helpers/vendor.ts';
import { nextObserved } from '../relay/probe.ts';
import { clients } from './clients/index.ts';
import { assertArrived, assertSeen } from './expect.ts';
import { post, postAndLeave, type Reply } from './post.ts';
import type { ClientRequest, Fault, Play, Seen, Wording } from './scenario.ts';
import { type Between, forgets, type Scenario, type Verdict } from './scenarios.ts';
import { type MatrixStage, modelOf } from './stage.ts';
import { vendors } from './vendors/index.ts';

export interface CellResult {
  readonly verdict: Verdict | 'failed';
  /** Why it is emulated, which field was refused, or what failed. */
  readonly note: string | undefined;
  /** What the gateway left out, in the client's words. */
  readonly dropped: readonly string[];
}

/** Never throws: a failure is a result. */
export async function playCell(stage: MatrixStage, scenario: Scenario, between: Between): Promise<CellResult> {
  const cell = new Cell(stage, scenario, between);
  try {
    return await cell.play();
  } catch (error) {
    return { verdict: 'failed', note: messageOf(error), dropped: [] };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.message}${cell(error)}` : String(error);
}

/** Where in the matrix's own files an assertion failed. */
function cell(error: Error): string {
  const line = error.stack?.split('\n').find((one) => one.includes('/tests/matrix/'));
  return line === undefined ? '' : ` (${line.trim().replace(/^at .*\/tests\/matrix\//, '')}`;
}

class Cell {
  readonly #stage: MatrixStage;
  readonly #scenario: Scenario;
  readonly #between: Between;
  readonly #dropped = new Set<string>();

  constructor(stage: MatrixStage, scenario: Scenario, between: Between) {
    this.#stage = stage;
    this.#scenario = scenario;
    this.#between = between;
  }

  async play(): Promise<CellResult> {
    const { needs } = this.#scenario;
    if (needs !== undefined && this.#client.lacks.has(needs))
      return { verdict: 'cannot ask', note: undefined, dropped: [] };
    const refused = await this.#run();
    const { client, vendor } = this.#between;
    const emulated = this.#scenario.emulated?.(this.#between);
    const dropped = [...this.#dropped];
    if (refused !== undefined) return { verdict: 'refused', note: refused, dropped };
    if (client === vendor) {
      assert.deepEqual(dropped, [], 'a relayed request keeps everything');
      return { verdict: 'exact', note: undefined, dropped };
    }
    return emulated === undefined
      ? { verdict: 'mapped', note: undefined, dropped }
      : { verdict: 'emulated', note: emulated, dropped };
  }

  #run(): Promise<string | undefined> {
    switch (this.#scenario.kind) {
      case 'answer':
        return this.#answer();
      case 'fault':
        return this.#fault();
      case 'fault-inside':
        return this.#between.isStream ? this.#brokenStream('fault') : this.#faultIn200();
      case 'cut':
        return this.#between.isStream ? this.#brokenStream('cut') : this.#cutWhole();
      case 'abort':
        return this.#abort();
    }
  }

  get #client() {
    return clients[this.#between.client];
  }

  get #vendor() {
    return vendors[this.#between.vendor];
  }

  get #model(): string {
    return modelOf(this.#between.vendor);
  }

  get #isSame(): boolean {
    return this.#between.client === this.#between.vendor;
  }

  #word(request: ClientRequest): Wording {
    return this.#client.word(request, { model: this.#model, isStream: this.#between.isStream });
  }

  /** The vendor plays; the answer is what the gateway makes of it. */
  async #send(wording: Wording, script: Script): Promise<Reply> {
    this.#stage.vendors[this.#between.vendor].play(script);
    const observed = nextObserved();
    const reply = await post(this.#stage.origin, wording);
    await observed;
    for (const name of reply.dropped?.split(', ') ?? []) this.#dropped.add(name);
    return reply;
  }

  #scriptOf(play: Play): Script {
    return this.#between.isStream
      ? this.#streaming(this.#vendor.stream(play, this.#model).join(''))
      : { headers: { 'content-type': 'application/json' }, body: this.#vendor.whole(play, this.#model) };
  }

  #streaming(body: string): Script {
    return { headers: { 'content-type': 'text/event-stream' }, body };
  }

  /** The field, when the gateway refuses what is asked. */
  async #answer(): Promise<string | undefined> {
    let before: { seen: Seen; play: Play } | undefined;
    for (const round of this.#scenario.rounds) {
      const request = round.request(before && this.#remembered(before.seen));
      const play = round.play(this.#between);
      const wording = this.#word(request);
      const script = this.#scriptOf(play);
      const received = this.#stage.vendors[this.#between.vendor].requests;
      const count = received.length;
      const reported = await this.#send(wording, script);
      if (reported.status === 400 && received.length === count) return this.#refusedField(reported);
      assert.equal(reported.status, 200, `the status; ${reported.body.slice(0, 300)}`);
      assert.equal(received.length, count + 1, 'the vendor was asked once');
      const arrived = this.#vendor.read(received.at(-1)!);
      assertArrived(arrived, request, before?.play, this.#between, this.#scenario);
      if (this.#isSame) {
        assert.equal(received.at(-1)!.body.toString(), wording.body, 'the request keeps every byte');
        assert.equal(reported.body, script.body, 'the answer keeps every byte');
      }
      const seen = this.#read(reported);
      assertSeen(seen, round.reported?.(this.#between) ?? play, request, this.#between);
      if (!this.#isSame) await this.#assertAccepted(reported, seen);
      before = { seen, play };
    }
    return undefined;
  }

  /** The official clients take the answer too, and read the same text out of it. */
  async #assertAccepted({ body, type }: Reply, seen: Seen): Promise<void> {
    const { client, isStream } = this.#between;
    const answer = { body, contentType: type };
    for (const oracle of (isStream ? streamOracles : wholeOracles)[client]) {
      const { text, refusal } = await oracle.understand(answer);
      const isMixed = isStream && seen.second !== '' && oracle.name === 'ai-sdk';
      if (!isMixed) assert.equal(text + refusal, seen.text + seen.refusal, `the text, read by ${oracle.name}`);
    }
  }

  /** What the client keeps of an answer for its next request. */
  #remembered(seen: Seen): Seen {
    if (!forgets(this.#scenario, this.#between)) return seen;
    const [message] = seen.echo as { role: string; content: unknown; tool_calls?: Record<string, unknown>[] }[];
    const calls = message!.tool_calls?.map(({ id, type, function: named }) => ({ id, type, function: named }));
    return { ...seen, echo: [{ role: message!.role, content: message!.content, tool_calls: calls }] };
  }

  #read(reported: Reply): Seen {
    if (!this.#between.isStream) {
      assert.match(reported.type, /^application\/json/);
      return this.#client.readWhole(reported.body);
    }
    assert.match(reported.type, /^text\/event-stream/);
    return this.#client.readStream(reported.body);
  }

  #refusedField(reported: Reply): string {
    const { field, message } = this.#client.readError(reported.body);
    assert.ok(field !== undefined && field !== 'model', `the refusal names the field: ${message}`);
    return field;
  }

  get #round() {
    return this.#scenario.rounds[0]!;
  }

  async #fault(): Promise<undefined> {
    const wording = this.#word(this.#round.request(undefined));
    for (const fault of ['too-long', 'overloaded'] as const satisfies Fault[]) {
      const script = this.#vendor.fault(fault);
      const reported = await this.#send(wording, script);
      const { message, type, code } = this.#client.readError(reported.body);
      if (fault === 'too-long') {
        assert.equal(reported.status, 400);
        // Clients of this protocol know it by its beginning, the others by the vendor's own words.
        const { error } = JSON.parse(script.body as string) as { error: { message: string } };
        if (this.#between.client === 'messages') assert.match(message, /^prompt is too long/);
        else assert.equal(message, error.message);
        if (this.#isSame) assert.equal(reported.body, script.body);
        assert.equal(type, tooLongTypes[this.#between.client]);
      } else {
        assert.equal(reported.status, 503);
        assert.equal(type, overloadedTypes[this.#between.client], `the type; code ${code}`);
      }
    }
  }

  /** The vendor says the first words, then tells of an error or is gone. */
  async #brokenStream(how: 'fault' | 'cut'): Promise<undefined> {
    const request = this.#round.request(undefined);
    const play = this.#round.play(this.#between);
    const frames = this.#vendor.stream(play, this.#model);
    const reported = await this.#send(this.#word(request), this.#breaking(frames, how, play));
    assert.equal(reported.status, 200);
    const { error, text } = this.#read(reported);
    assert.ok(text !== '' && text !== play.text && play.text!.startsWith(text), `the first words, not "${text}"`);
    assert.ok(error, 'the stream tells that it broke');
    assert.ok(error.message !== '' && !error.message.includes('vendor'));
  }

  #breaking(frames: readonly string[], how: 'fault' | 'cut', play: Play): Script {
    const count = this.#firstWords(frames, play);
    const before = frames.slice(0, count).join('');
    if (how === 'fault') return this.#streaming(before + this.#vendor.faultFrames(count).join(''));
    // The connection breaks in the middle of the next frame.
    const body = before + frames[count]!;
    return { ...this.#streaming(body), dieAfter: Buffer.byteLength(before) + 20 };
  }

  /** How many frames it takes until the client has something to show. */
  #firstWords(frames: readonly string[], play: Play): number {
    const [first] = play.text!.split(' ');
    return frames.findIndex((frame) => frame.includes(first!)) + 1;
  }

  async #faultIn200(): Promise<undefined> {
    const script = this.#vendor.fault('overloaded');
    const reply = await this.#send(this.#word(this.#round.request(undefined)), {
      headers: script.headers,
      body: script.body,
    });
    assert.ok(reply.status >= 500, `the status ${reply.status}`);
    assert.notEqual(this.#client.readError(reply.body).message, '');
  }

  async #cutWhole(): Promise<undefined> {
    const script = this.#scriptOf(this.#round.play(this.#between));
    const reply = await this.#send(this.#word(this.#round.request(undefined)), { ...script, dieAfter: 200 });
    assert.equal(reply.status, 502);
    assert.notEqual(this.#client.readError(reply.body).message, '');
  }

  /** The vendor says the first words (streamed) or nothing yet (whole); then the client is gone, and so is the request. */
  async #abort(): Promise<undefined> {
    const play = this.#round.play(this.#between);
    const wording = this.#word(this.#round.request(undefined));
    const vendor = this.#stage.vendors[this.#between.vendor];
    const frames = this.#vendor.stream(play, this.#model);
    const { promise: never, resolve: finish } = Promise.withResolvers<void>();
    const first = frames.slice(0, this.#firstWords(frames, play)).join('');
    vendor.play(this.#between.isStream ? { ...this.#streaming(first), hang: true } : { after: never });
    const count = vendor.requests.length;
    const observed = nextObserved();
    const word = play.text!.split(' ')[0]!;
    const now = this.#between.isStream ? {} : { now: arrival(() => vendor.requests.length > count) };
    const left = postAndLeave(this.#stage.origin, wording, { enough: (body) => body.includes(word), ...now });
    await within(left, 'the client can leave');
    const { outcome } = await observed;
    assert.equal(outcome.kind, 'client_left');
    finish();
    await within(vendor.requests.at(-1)!.closed, 'the socket to the vendor is closed');
  }
}

const tooLongTypes = {
  chat: 'invalid_request_error',
  responses: 'invalid_request_error',
  messages: 'invalid_request_error',
  gemini: 'INVALID_ARGUMENT',
} as const;
const overloadedTypes = {
  chat: 'server_error',
  responses: 'server_error',
  messages: 'overloaded_error',
  gemini: 'UNAVAILABLE',
} as const;

async function arrival(isThere: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !isThere(); turn++) await sleep(1);
}

async function within(promise: Promise<void>, what: string): Promise<void> {
  const late = sleep(2_000, 'late', { ref: false });
  assert.notEqual(await Promise.race([promise, late]), 'late', what);
}

/** One request on its way: plays the client, the server that renders, the tap that counts, and the wire to a vendor. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Answer, defineFact, type Outcome } from '../../core/contract.ts';
import { GatewayError, toGatewayError, UpstreamError, UpstreamRefusal } from '../../core/errors.ts';
import { type IncomingRequest, LiveExchange } from '../../core/exchange.ts';
import {
  type Call,
  type Caller,
  call,
  caller,
  type Model,
  meter,
  model,
  type PlanTerms,
  plan,
  priceRatio,
  type Target,
  target,
  usageReport,
} from '../../core/vocabulary.ts';
import type { Chance } from './chance.ts';
import type { Oracle } from './oracle.ts';
import { endpoint, type Process } from './process.ts';
import type { Schedule } from './schedule.ts';
import type { Story, Try } from './story.ts';
import type { Counts, Fraction, PriceList } from './tariff.ts';
import { drawFate, type Fate, type VendorAnswer, type VendorProfile } from './vendors.ts';

export interface Setting {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly oracle: Oracle;
  readonly vendors: VendorProfile;
  /** The line that the process's journal has come to. */
  readonly line: () => number;
}

/** What the client asks, and on which terms. */
export interface Ask {
  readonly caller: Caller;
  readonly plan: PlanTerms;
  readonly model: Model;
  /** What the model's price was made of. */
  readonly price: PriceList;
  readonly ratio: Fraction | undefined;
  readonly call: Call;
  /** The key that it carries, and the body that decides with it. */
  readonly key: string | undefined;
  /** Who it says that it is; undefined: nobody asks here. */
  readonly apiKey: string | undefined;
  readonly body: string;
  /** The client closes the connection after so long, if the answer is not whole by then. */
  readonly leavesAfterMs: number | undefined;
}

const visit = defineFact<Visit>('simulated visit');
const noQuery = new URLSearchParams();
const noSocket = {} as IncomingMessage & ServerResponse;

/** Told of each call that its API key has let in. */
export const admitted = (exchange: LiveExchange): undefined | Promise<void> => exchange.get(visit).admitted();

/** The centre: finds the visit and hands over to it. */
export const forward = (exchange: LiveExchange): Promise<Answer> => exchange.get(visit).forward();

export class Visit {
  readonly story: Story;
  readonly #setting: Setting;
  readonly #process: Process;
  readonly #exchange: LiveExchange;
  readonly #ask: Ask;
  readonly #credentialModel: () => Target;
  /** The event in which it came. */
  #begunIn = 0;
  #answer: VendorAnswer | undefined;
  #chunk = 0;
  /** The body as the plugins hand it on; its text so far. */
  #body: AsyncIterator<Uint8Array> | undefined;
  #text = '';

  constructor(setting: Setting, process: Process, story: Story, exchange: LiveExchange, ask: Ask) {
    this.#setting = setting;
    this.#process = process;
    this.#exchange = exchange;
    this.#ask = ask;
    this.story = story;
    this.#credentialModel = () => exchange.get(target);
  }

  static exchangeOf(process: Process, { key, apiKey, body }: Ask): LiveExchange {
    const headers = {
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
    };
    const from = { remoteAddress: '192.0.2.1' };
    const request = { path: endpoint.path, query: noQuery, headers, ...from, body: Buffer.from(body) };
    const incoming = request as unknown as IncomingRequest;
    return new LiveExchange(process.newId(), endpoint, incoming, noSocket, noSocket, process.host.clock);
  }

  begin(): void {
    const { schedule } = this.#setting;
    const exchange = this.#exchange;
    const { leavesAfterMs, ratio } = this.#ask;
    exchange.set(visit, this);
    this.#begunIn = schedule.operations;
    exchange.set(call, this.#ask.call);
    exchange.set(plan, this.#ask.plan);
    exchange.set(model, this.#ask.model);
    if (ratio !== undefined) exchange.set(priceRatio, ratio);
    if (leavesAfterMs !== undefined)
      schedule.after(leavesAfterMs, this.#process.life, 'client leaves', () => this.#leave());
    if (this.#ask.apiKey === undefined) {
      exchange.set(caller, this.#ask.caller);
      this.#setting.oracle.limits.entered(this.story);
    }
    this.#process.handle(exchange).then(
      (answer) => this.#begun(answer),
      (error: unknown) => this.#refused(toGatewayError(error)),
    );
  }

  /** Calls that have waited for one look at their key come to the limiter one after another, each in a turn of its own. */
  admitted(): undefined | Promise<void> {
    const { schedule, oracle } = this.#setting;
    const { keyId } = this.#exchange.get(caller);
    oracle.callers.admitted(this.story, keyId, this.#process.host.clock.now());
    const enter = () => oracle.limits.entered(this.story);
    if (schedule.operations === this.#begunIn) {
      enter();
      return undefined;
    }
    return new Promise<void>((resolve) => {
      schedule.after(0, this.#process.life, 'let in', resolve);
    }).then(enter);
  }

  // ------------------------------------------------------------------------------------------------------- the wire

  /** As core/forward.ts does it: hold and departure first, then the socket. */
  async forward(): Promise<Answer> {
    const { oracle, line } = this.#setting;
    const { story } = this;
    const exchange = this.#exchange;
    const { credential, model: name } = this.#credentialModel();
    const attempt: Try = { credential, state: 'waiting', received: false, billed: false };
    story.tries.push(attempt);
    oracle.aimed(story, credential, name);
    if (exchange.left !== undefined) throw exchange.left;
    const ready = exchange.readyToSend();
    if (ready !== undefined) await ready;
    story.departed += 1;
    story.departedLine = line();
    const stopped = exchange.aborted ?? exchange.left;
    if (stopped !== undefined) throw new UpstreamError('connect', stopped.message, { cause: stopped });
    exchange.hasSent = true;
    exchange.failure = undefined;
    attempt.state = 'flying';
    return this.#dispatch(attempt, name);
  }

  #dispatch(attempt: Try, name: string): Promise<Answer> {
    const { schedule, chance, vendors, oracle } = this.#setting;
    const exchange = this.#exchange;
    const { inputTokens, maxOutputTokens } = this.#ask.call;
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => {
        exchange.onAbort(undefined);
        reject(error);
      };
      exchange.onAbort((reason) => {
        if (!attempt.received) attempt.state = 'unsent';
        fail(new UpstreamError(attempt.received ? 'sent' : 'connect', reason.message, { cause: reason }));
      });
      schedule.after(chance.delay(5), undefined, 'connect', () => {
        if (attempt.state === 'unsent') return;
        const fate = drawFate(chance, vendors, inputTokens, maxOutputTokens ?? vendors.longestOutput);
        if (fate.kind === 'unreachable') attempt.state = 'unsent';
        else attempt.received = true;
        attempt.billed = fate.kind === 'answer' || (fate.kind === 'broken' && fate.billed);
        oracle.received(this.story, attempt);
        schedule.after(fate.afterMs, this.#process.life, fate.kind, () => {
          if (exchange.aborted === undefined) this.#arrive(attempt, name, fate, resolve, fail);
        });
      });
    });
  }

  /** The vendor's word comes back. */
  #arrive(
    attempt: Try,
    name: string,
    fate: Fate,
    resolve: (answer: Answer) => void,
    fail: (error: Error) => void,
  ): void {
    if (fate.kind === 'unreachable') {
      fail(new UpstreamError('connect', 'connection refused'));
    } else if (fate.kind === 'answer') {
      attempt.state = 'answered';
      this.#answer = fate.answer;
      resolve({ status: 200, headers: {}, body: this.#ask.key === undefined ? '' : this.#bodyOf(fate.answer) });
    } else if (fate.kind === 'broken') {
      attempt.state = 'broken';
      const { status } = fate;
      fail(status === undefined ? new UpstreamError('sent', 'reset') : refusalOf(status, undefined, true));
    } else {
      attempt.state = 'refused';
      this.#setting.oracle.turnedAway(this.story, attempt.credential, name, fate.status, fate.retryAfterMs);
      fail(refusalOf(fate.status, fate.retryAfterMs, false));
    }
  }

  // ---------------------------------------------------------------------------------------------------- the way out

  #refused(error: GatewayError): void {
    const left = this.#exchange.aborted?.kind === 'client_left';
    this.story.status = left ? 499 : error.status;
    this.#setting.oracle.refused(this.story, error);
    this.#end(left ? 'client_left' : 'complete');
  }

  /** A head has come: of an answer that is on its way, or of one that was given before. */
  #begun({ status, headers, body }: Answer): void {
    this.story.status = status;
    if (headers['idempotent-replayed'] === 'true') {
      this.#setting.oracle.limits.passed(this.story);
      this.#setting.oracle.keys.repeated(this.story, Buffer.from(body as Uint8Array).toString());
      this.#end('complete');
      return;
    }
    if (typeof body !== 'string') this.#body = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    this.#next();
  }

  /** The bytes of an answer that somebody may keep: one chunk for each of the vendor's. */
  #bodyOf({ chunks }: VendorAnswer): AsyncIterable<Uint8Array> {
    let at = 0;
    const next = async (): Promise<IteratorResult<Uint8Array>> => {
      at += 1;
      if (at > chunks.length) return { done: true, value: undefined };
      return { done: false, value: Buffer.from(at === 1 ? this.story.id : ` ${chunks[at - 1]}`) };
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  #next(): void {
    const { schedule, chance } = this.#setting;
    const { chunkMeanMs } = this.#answer!;
    schedule.after(chance.delay(chunkMeanMs), this.#process.life, 'chunk', () => this.#pull());
  }

  #pull(): void {
    const { chunks, cutAfter } = this.#answer!;
    if (this.story.ended) return;
    if (this.#exchange.left !== undefined) this.#exchange.readsOn(this.#process.host.clock.monotonic(), 1);
    if (this.#exchange.aborted !== undefined) this.#end('client_left');
    else if (cutAfter === this.#chunk) this.#break(new GatewayError('upstream_failed', 'cut'));
    else if (this.#chunk === chunks.length) this.#pullLast();
    else if (this.#show(chunks[this.#chunk]!)) {
      this.#chunk += 1;
      this.#next();
    } else this.#break(new GatewayError('insufficient_balance', 'used up'));
  }

  /** A chunk goes to the client, past the meter if it is a stream. false: it must end. */
  #show(tokens: number): boolean {
    const { story } = this;
    story.firstByte = true;
    void this.#body?.next().then(({ value }) => {
      this.#text += Buffer.from(value ?? '').toString();
    });
    if (!this.#ask.call.stream) return true;
    story.seen += tokens;
    const goesOn = this.#exchange.get(meter).observe(story.seen);
    this.#setting.oracle.observed(story, goesOn);
    return goesOn;
  }

  /** The body's end is pulled before the exchange ends, as the writer does it. */
  #pullLast(): void {
    if (this.#body === undefined) {
      this.#finish();
      return;
    }
    void this.#body.next().then(() => {
      if (this.story.ended) return;
      this.#setting.oracle.keys.answered(this.story, this.#text);
      this.#finish();
    });
  }

  /** The protocol's terminal event has come. */
  #finish(): void {
    const { usage, chunks } = this.#answer!;
    const { inputTokens } = this.#ask.call;
    this.story.firstByte = true;
    // A tap that was told nothing estimates by what it saw of the text, as a rule a little more than there is.
    const guess = { input: inputTokens, output: chunks.reduce((sum, tokens) => sum + tokens, 0) };
    this.#report(usage ?? guess, usage === undefined, true);
    this.#end('complete');
  }

  #break(error: GatewayError): void {
    const { chance } = this.#setting;
    const { seen, inputTokens } = this.story;
    this.#exchange.fail(error);
    if (chance.oneIn(2)) this.#report({ input: inputTokens, output: seen }, chance.oneIn(2), false);
    this.#end('failed');
  }

  #leave(): void {
    const { story } = this;
    if (story.ended) return;
    story.clientLeft = true;
    this.#exchange.leave(this.#process.host.clock.monotonic());
    // What it asked for may be finished all the same, for whoever asks again under its key.
    if (this.#exchange.aborted === undefined) return;
    // Before the head the rejected attempt ends it; a body's reader learns of it at once.
    if (this.#answer !== undefined) this.#end('client_left');
  }

  #report(usage: Counts, estimated: boolean, terminal: boolean): void {
    this.story.told = usage;
    this.#exchange.set(usageReport, { usage, estimated, terminal, upstreamId: undefined, finish: 'stop' });
  }

  #end(kind: Outcome['kind']): void {
    const { story } = this;
    if (story.ended) return;
    const { oracle, line } = this.#setting;
    story.ended = true;
    story.endedLine = line();
    oracle.ended(story, kind);
    void this.#exchange.end({ kind, status: story.status, bytesOut: 0, totalMs: 0 }, this.#process.log);
  }
}

function refusalOf(status: number, retryAfterMs: number | undefined, mayRun: boolean): UpstreamRefusal {
  const kind = status === 429 ? 'rate_limited' : status < 500 ? 'invalid_request' : 'upstream_failed';
  const keyAtFault = status === 401 || status === 402 || status === 403;
  return new UpstreamRefusal(new GatewayError(kind, `status ${status}`), { status, retryAfterMs, mayRun, keyAtFault });
}

/** The wire: one try of a request with a vendor, as core/http/forward.ts sends it, and what comes back. */

import { type UpstreamRequest, upstreamRequest } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { UpstreamError, UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { LiveBranch, type LiveExchange } from '../../core/http/exchange.ts';
import { usageReport } from '../../plugins/common/domain/calls.ts';
import { model } from '../../plugins/common/domain/models.ts';
import { target } from '../../plugins/common/domain/upstreams.ts';
import { refuseUnmetered } from '../../plugins/common/wire/named.ts';
import type { ClientCall, Setting } from './client-call.ts';
import type { GuardedTexts } from './guarded.ts';
import { MeteredAnswer, reportedOf, textOf } from './metered-answer.ts';
import type { Life } from './schedule.ts';
import { reportOf } from './talk.ts';
import { isCheapToRead } from './tariff.ts';
import { newTry, type Trace, type Try } from './trace.ts';
import { drawFate, type Fate, type VendorAnswer } from './vendors.ts';

/** Names the try whose answer it is, counted from 1. */
export const tryHeader = 'x-try';

export interface WireOptions {
  readonly setting: Setting;
  readonly life: Life;
  readonly trace: Trace;
  readonly call: ClientCall;
  /** Whether its client has its answer, or an error. */
  readonly isOver: () => boolean;
  /** Judges a whole answer; undefined: there are no checks. */
  readonly judge: ((exchange: LiveExchange, chunks: number) => Promise<void>) | undefined;
  readonly texts: GuardedTexts | undefined;
}

export class Wire {
  /** The answer of a try beside which no other can run: the one that reads it counts it too. */
  answer: VendorAnswer | undefined;
  readonly #options: WireOptions;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  /** As core/http/forward.ts does it: a connection first, then hold and departure, then the request's bytes. */
  async send(exchange: LiveExchange): Promise<Answer> {
    const { trace, setting, call } = this.#options;
    const { oracle, schedule, line } = setting;
    const { provider, credential, model: name, upstream } = exchange.get(target);
    const { drain } = upstream;
    exchange.set(upstreamRequest, { drain } as UpstreamRequest);
    const isRacing = exchange instanceof LiveBranch;
    exchange.attemptSent = false;
    this.#readNames(exchange);
    const list = exchange.get(model).id === call.other?.model.id ? call.other.price : call.price;
    const isDrained = drain !== undefined || isCheapToRead(call.call, list, trace.ratio);
    const about = { provider, credential, target: name, list };
    const attempt = newTry({ ...about, at: schedule.now, isRacing, isDrained });
    trace.list = list;
    trace.tries.push(attempt);
    oracle.aimed(trace, attempt, name);
    try {
      if (exchange.clientDisconnected !== undefined) throw exchange.clientDisconnected;
      const ready = exchange.readyToSend();
      if (ready !== undefined) await ready;
      if (setting.chance.oneIn(2)) await this.#connect(exchange);
      trace.departures += 1;
      attempt.departure = trace.departures;
      oracle.estimates.sends(trace, attempt);
      const begun = exchange.readyForFirstByte();
      if (begun !== undefined) await begun;
      if (trace.departed === 0) trace.departedLine = line();
      trace.departed += 1;
      const stopped = exchange.aborted ?? exchange.clientDisconnected;
      if (stopped !== undefined) throw new UpstreamError('connect', stopped.message, { cause: stopped });
    } catch (error) {
      attempt.over = true;
      trace.lastFailed = attempt;
      throw error;
    }
    exchange.hasSent = true;
    exchange.attemptSent = true;
    exchange.failure = undefined;
    oracle.hedges.departs(trace);
    attempt.hasLeft = true;
    attempt.state = 'flying';
    return this.#dispatch(exchange, attempt, name);
  }

  /** As plugins/protocol-convert/relay/call.ts does it. */
  #readNames(exchange: LiveExchange): void {
    const { call, setting } = this.#options;
    if (call.beside === undefined) return;
    const served = exchange.get(model).id;
    const name = exchange.get(target).model;
    const isOwn = (one: string) => one === call.call.model || one === name || one === served;
    refuseUnmetered(call.beside.protocol, setting.reads(call.beside.json), { has: isOwn });
  }

  /** The vendor has a request that names another model: it is that one which runs. */
  #runsOther(attempt: Try): void {
    const { call, trace, setting } = this.#options;
    const other = call.beside?.other;
    if (other === undefined) return;
    attempt.list = other.price;
    if (call.caller.models?.has(other.model.id) === false)
      setting.oracle.violations.add('M15', trace.id, `runs ${other.model.id}, which its key may not call`);
  }

  /** A connection of its own: it takes a while, or fails, and nothing has left by then. */
  #connect(exchange: LiveExchange): Promise<void> {
    const { setting, life } = this.#options;
    const { schedule, chance, vendors } = setting;
    return new Promise((resolve, reject) => {
      exchange.runs({ abort: (cause) => reject(new UpstreamError('connect', cause.message, { cause })) });
      schedule.after(chance.delay(20), life, 'connect', () => {
        exchange.runs(undefined);
        if (chance.below(400) < vendors.troublePercent) reject(new UpstreamError('connect', 'connection refused'));
        else resolve();
      });
    });
  }

  #dispatch(exchange: LiveExchange, attempt: Try, name: string): Promise<Answer> {
    const { isRacing } = attempt;
    const { setting, trace, call, life } = this.#options;
    const { schedule, chance, vendors, oracle } = setting;
    const { inputTokens, maxOutputTokens } = call.call;
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => {
        attempt.over = true;
        trace.lastFailed = attempt;
        exchange.attemptSent = false;
        exchange.runs(undefined);
        reject(error);
      };
      const abort = (reason: GatewayError) => {
        if (!attempt.received) attempt.state = 'unsent';
        const error = new UpstreamError(attempt.received ? 'sent' : 'connect', reason.message, { cause: reason });
        const isHeardLate = isRacing && attempt.received && trace.winner !== undefined && chance.oneIn(20);
        attempt.over = true;
        if (isHeardLate) schedule.after(chance.pick([300, 2_000]), life, 'stop heard', () => fail(error));
        else fail(error);
      };
      exchange.runs({ abort });
      schedule.after(chance.delay(5), undefined, 'connect', () => {
        if (attempt.state === 'unsent') return;
        const fate = drawFate(chance, vendors, inputTokens, maxOutputTokens ?? vendors.longestOutput);
        if (fate.kind === 'unreachable') attempt.state = 'unsent';
        else attempt.received = true;
        if (attempt.received) this.#runsOther(attempt);
        if (attempt.received) this.#options.texts?.sent();
        attempt.billed = fate.kind === 'answer' || (fate.kind === 'broken' && fate.billed);
        if (attempt.billed) attempt.bill = { input: inputTokens };
        oracle.received(trace, attempt);
        schedule.after(fate.afterMs, life, fate.kind, () => {
          if (exchange.aborted !== undefined) return;
          if (fate.kind === 'answer') this.#answered(exchange, attempt, fate.answer, resolve, fail);
          else fail(this.#failed(exchange, attempt, name, fate));
        });
      });
    });
  }

  /** The vendor's word comes back, and is no answer. */
  #failed(exchange: LiveExchange, attempt: Try, name: string, fate: Exclude<Fate, { kind: 'answer' }>): Error {
    const { setting, trace, isOver } = this.#options;
    if (fate.kind === 'unreachable') return new UpstreamError('connect', 'connection refused');
    const { status } = fate;
    if (fate.kind === 'broken') {
      attempt.state = 'broken';
      if (status === undefined) return new UpstreamError('sent', 'reset');
      if (attempt.isRacing && attempt.billed && setting.chance.oneIn(2)) this.#reportBill(exchange, attempt);
      return refusalOf(status, undefined, true);
    }
    attempt.state = 'refused';
    if (comesBehindOpening(trace)) {
      if (exchange instanceof LiveBranch) exchange.headStatus = 200;
      exchange.set(usageReport, nothingUsed);
    }
    // Nothing listens to one that has lost.
    if (trace.winner === undefined && !isOver())
      setting.oracle.turnedAway(trace, attempt.credential, name, fate.status, fate.retryAfterMs);
    if (fate.status === 400 && this.#options.call.other !== undefined && isTooLong(trace)) return tooLong();
    return refusalOf(fate.status, fate.retryAfterMs, false);
  }

  /** The vendor says what it has used in vain, or enough to guess. */
  #reportBill(exchange: LiveExchange, attempt: Try): void {
    const { setting, trace } = this.#options;
    const usage = { input: trace.inputTokens, output: setting.chance.below(50) };
    attempt.bill = usage;
    attempt.isExact = setting.chance.oneIn(2);
    attempt.reported = { usage, isGuess: !attempt.isExact, isWhole: false, seen: 0 };
    exchange.set(usageReport, reportOf(trace.id, attempt.reported));
  }

  #answered(
    exchange: LiveExchange,
    attempt: Try,
    answer: VendorAnswer,
    resolve: (answer: Answer) => void,
    fail: (error: Error) => void,
  ): void {
    attempt.headed = true;
    if (exchange instanceof LiveBranch) {
      this.#raced(exchange, attempt, answer, resolve, fail);
      return;
    }
    const { judge, trace, call } = this.#options;
    const give = (body: Answer['body']) => {
      attempt.state = 'answered';
      trace.winner = attempt;
      this.answer = answer;
      resolve({ status: 200, headers: {}, body: call.key === undefined ? '' : body });
    };
    if (judge === undefined || trace.stream || answer.cutAfter !== undefined) give(this.#bodyOf(answer));
    else this.#judge(exchange, attempt, answer, judge, { give: () => give(wholeOf(trace, answer)), fail });
  }

  /** A whole answer is read, counted and judged before its head goes out. */
  #judge(
    exchange: LiveExchange,
    attempt: Try,
    answer: VendorAnswer,
    judge: NonNullable<WireOptions['judge']>,
    { give, fail }: { give: () => void; fail: (error: Error) => void },
  ): void {
    const { trace } = this.#options;
    judge(exchange, answer.chunks.length).then(
      () => exchange.aborted ?? give(),
      (error: Error) => {
        if (exchange.aborted !== undefined) return;
        attempt.state = 'answered';
        trace.reported = reportedOf(trace.inputTokens, answer);
        exchange.set(usageReport, { ...reportOf(trace.id, trace.reported), refusedHere: true });
        fail(error);
      },
    );
  }

  /** The head of a stream says nothing, its first event does; a whole answer is one when all of it is there. */
  #raced(
    branch: LiveBranch,
    attempt: Try,
    answer: VendorAnswer,
    resolve: (answer: Answer) => void,
    fail: (error: Error) => void,
  ): void {
    const { setting, trace, life, isOver } = this.#options;
    const { schedule, chance } = setting;
    branch.headStatus = 200;
    const { chunks, chunkMeanMs, cutAfter } = answer;
    const wholeMs = () => chunks.reduce((sum) => sum + chance.delay(chunkMeanMs), 0);
    const delayMs = trace.stream ? chance.delay(10) : wholeMs();
    schedule.after(delayMs, life, trace.stream ? 'first event' : 'whole answer', () => {
      if (branch.aborted !== undefined) return;
      if (cutAfter === 0 || (!trace.stream && cutAfter !== undefined)) {
        attempt.state = 'broken';
        fail(new UpstreamError('sent', 'cut'));
        return;
      }
      attempt.state = 'answered';
      if (!isOver()) trace.winner ??= attempt;
      const tap = new MeteredAnswer({ setting, life, trace, branch, attempt, answer });
      branch.runs({ abort: (reason) => tap.break(reason) });
      if (trace.stream) tap.begin();
      const headers = { [tryHeader]: String(trace.tries.indexOf(attempt) + 1) };
      resolve({ status: 200, headers, body: trace.stream ? tap : tap.whole() });
    });
  }

  /** The bytes of an answer that somebody may keep: one chunk for each of the vendor's. */
  #bodyOf({ chunks }: VendorAnswer): AsyncIterable<Uint8Array> {
    let at = 0;
    const next = async (): Promise<IteratorResult<Uint8Array>> => {
      at += 1;
      if (at > chunks.length) return { done: true, value: undefined };
      return { done: false, value: Buffer.from(textOf(this.#options.trace, chunks, at - 1)) };
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }
}

/** The bytes of an answer that is there at once. */
const wholeOf = (trace: Trace, { chunks }: VendorAnswer) =>
  Buffer.from(chunks.map((_tokens, index) => textOf(trace, chunks, index)).join(''));

/** in one call of three a refusal comes in the stream of a 200, behind frames that say nothing yet. */
const comesBehindOpening = ({ id }: Trace) => Number.parseInt(id.slice(-1), 16) % 3 === 0;
/** Where another model may serve, in two calls of three a 400 says that the prompt is too long. */
const isTooLong = ({ id }: Trace) => Number.parseInt(id.slice(-2, -1), 16) % 3 > 0;
const tooLong = () =>
  new UpstreamRefusal(new GatewayError('invalid_request', 'too long'), {
    status: 400,
    about: 'context_length',
    elsewhere: true,
  });
const nothingUsed = { usage: {}, estimated: false, terminal: false, upstreamId: undefined, finish: undefined };

function refusalOf(status: number, retryAfterMs: number | undefined, mayRun: boolean): UpstreamRefusal {
  const kind = status === 429 ? 'rate_limited' : status < 500 ? 'invalid_request' : 'upstream_failed';
  const keyAtFault = status === 401 || status === 402 || status === 403;
  return new UpstreamRefusal(new GatewayError(kind, `status ${status}`), { status, retryAfterMs, mayRun, keyAtFault });
}

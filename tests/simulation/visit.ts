/** One request on its way: plays the client, the server that renders, the tap that counts, and the wire to a vendor. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { defineContextKey, type Exchange, type Outcome } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import { toGatewayError } from '../../core/contract/upstream-failures.ts';
import { deadlinePassed, LiveExchange } from '../../core/http/exchange.ts';
import type { IncomingRequest } from '../../core/http/incoming-request.ts';
import { caller } from '../../plugins/common/domain/accounts.ts';
import { call, conversation, spendGuard, usageReport } from '../../plugins/common/domain/calls.ts';
import { serveWithoutAttempt } from '../../plugins/common/domain/ledger.ts';
import { instead, model } from '../../plugins/common/domain/models.ts';
import { plan } from '../../plugins/common/domain/plans.ts';
import { priceRatio } from '../../plugins/common/domain/price-ratio.ts';
import type { PromptTexts } from '../../plugins/common/wire/prompt-rules.ts';
import { insteadOf } from '../../plugins/models/instead.ts';
import type { Cached } from './cached.ts';
import type { ClientCall, Setting } from './client-call.ts';
import { GuardedTexts } from './guarded.ts';
import { reportedOf } from './metered-answer.ts';
import { endpoint, type Process } from './process.ts';
import { heard } from './reported.ts';
import { reportOf, talkOf } from './talk.ts';
import type { ReportedUsage, Trace, Try } from './trace.ts';
import { tryHeader, Wire } from './wire.ts';

const visit = defineContextKey<Visit>('simulated visit');
const noQuery = new URLSearchParams();
const noSocket = {} as IncomingMessage & ServerResponse;

/** Called for each call that its API key has let in. */
export const admitted = (exchange: LiveExchange): undefined | Promise<void> => exchange.get(visit).admitted();

/** The centre: finds the visit and hands over to it. */
export const forward = (exchange: LiveExchange): Promise<Answer> => exchange.get(visit).forward(exchange);

/** What a cache below billing has for it. */
export const fromCache = (exchange: LiveExchange): undefined | Promise<Answer> => exchange.get(visit).fromCache();

/** Its texts, for checks. */
export const textsOf = (exchange: Exchange): PromptTexts => exchange.get(visit).texts!.prompt;

export class Visit {
  readonly trace: Trace;
  /** undefined: there are no checks. */
  readonly texts: GuardedTexts | undefined;
  readonly #setting: Setting;
  readonly #process: Process;
  readonly #exchange: LiveExchange;
  readonly #call: ClientCall;
  /** The event in which it came. */
  #begunIn = 0;
  readonly #wire: Wire;
  /** The client has its answer, or an error. */
  #isOver = false;
  /** An answer is on its way to the client. */
  #isReading = false;
  #chunk = 0;
  /** The body as the plugins hand it on; its text so far. */
  #body: AsyncIterator<Uint8Array> | undefined;
  #text = '';

  constructor(setting: Setting, process: Process, trace: Trace, exchange: LiveExchange, call: ClientCall) {
    this.#setting = setting;
    this.#process = process;
    this.#exchange = exchange;
    this.#call = call;
    this.trace = trace;
    const { transform } = process;
    const texts = call.marks && new GuardedTexts(call.marks, trace, setting.oracle.violations);
    this.texts = texts;
    const judge =
      texts &&
      (async (exchange: LiveExchange, chunks: number) => {
        texts.begin(transform!, exchange);
        await texts.whole(chunks);
      });
    this.#wire = new Wire({ setting, life: process.life, trace, call, isOver: () => this.#isOver, judge, texts });
  }

  static exchangeOf(process: Process, { key, apiKey, body }: ClientCall): LiveExchange {
    const headers = {
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
    };
    const from = { remoteAddress: '192.0.2.1' };
    const sent = { body: Buffer.from(body), bodyBytes: Buffer.byteLength(body) };
    const request = { path: endpoint.path, query: noQuery, headers, ...from, ...sent };
    const incoming = request as unknown as IncomingRequest;
    return new LiveExchange(process.newId(), endpoint, incoming, noSocket, noSocket, process.host.clock, {
      log: process.log,
      sources: [],
    });
  }

  begin(): void {
    const { schedule } = this.#setting;
    const exchange = this.#exchange;
    const { leavesAfterMs, lastsMs, ratio, leavesTraces } = this.#call;
    exchange.set(visit, this);
    this.#begunIn = schedule.operations;
    exchange.set(call, this.#call.call);
    exchange.set(plan, this.#call.plan);
    exchange.set(model, this.#call.model);
    this.#offerOther();
    if (ratio !== undefined) exchange.set(priceRatio, ratio);
    const settled = () => this.#setting.oracle.settled(this.trace, this.#process.host.clock.now());
    const talk = talkOf(this.trace, leavesTraces, settled);
    if (talk !== undefined) exchange.set(conversation, talk);
    // Deferred before all others, and so the last that is done.
    if (this.trace.hedgeAfterMs !== undefined) exchange.defer(({ kind }) => this.#ended(kind));
    if (leavesAfterMs !== undefined)
      schedule.after(leavesAfterMs, this.#process.life, 'client leaves', () => this.#leave());
    if (lastsMs !== undefined)
      schedule.after(lastsMs, this.#process.life, 'deadline', () => this.#isOver || exchange.abort(deadlinePassed()));
    if (this.#call.apiKey === undefined) {
      exchange.set(caller, this.#call.caller);
      this.#setting.oracle.limits.entered(this.trace);
    }
    this.#process.handle(exchange).then(
      (answer) => this.#begun(answer),
      (error: unknown) => this.#refused(toGatewayError(error)),
    );
  }

  /** As the models plugin does it for a caller that may call both. */
  #offerOther(): void {
    const { other, model: own } = this.#call;
    if (other === undefined) return;
    const named = { ...own, instead: { context_length: [other.model.id], unavailable: [other.model.id] } };
    const offered = insteadOf(
      this.#exchange,
      named,
      () => other.model,
      () => true,
      (entry) => entry,
    );
    this.#exchange.set(instead, offered!);
  }

  /** Calls that have waited for one look at their key come to the limiter one after another, each in a turn of its own. */
  admitted(): undefined | Promise<void> {
    const { schedule, oracle } = this.#setting;
    const { keyId } = this.#exchange.get(caller);
    oracle.callers.admitted(this.trace, keyId, this.#process.host.clock.now());
    const enter = () => oracle.limits.entered(this.trace);
    if (schedule.operations === this.#begunIn) {
      enter();
      return undefined;
    }
    return new Promise<void>((resolve) => {
      schedule.after(0, this.#process.life, 'let in', resolve);
    }).then(enter);
  }

  /** One try, on the exchange or a branch of it. */
  forward(exchange: LiveExchange): Promise<Answer> {
    return this.#wire.send(exchange);
  }

  fromCache(): undefined | Promise<Answer> {
    const { cached } = this.#call;
    return cached && this.#serve(cached);
  }

  /** As plugins/cache does it for a hit. */
  async #serve(cached: Cached): Promise<Answer> {
    const exchange = this.#exchange;
    const { oracle } = this.#setting;
    const { usage, share } = cached;
    oracle.held(this.trace);
    await exchange.get(spendGuard).cover?.(usage, share);
    const stopped = exchange.aborted ?? exchange.clientDisconnected;
    if (stopped !== undefined) throw stopped;
    oracle.served(this.trace, cached);
    serveWithoutAttempt(exchange, { name: 'cache', usage, price: share.numerator === 0n ? 'free' : { ratio: share } });
    return { status: 200, headers: {}, body: Buffer.from(`${this.trace.id} cached`) };
  }

  // ---------------------------------------------------------------------------------------------------- the way out

  #refused(error: GatewayError): void {
    const left = this.#exchange.aborted?.kind === 'client_left';
    this.trace.status = left ? 499 : error.status;
    // The client pays for work in vain what the vendor itself has reported, of the try that came last.
    if (!left && this.trace.lastFailed?.isExact === true) this.trace.payer = this.trace.lastFailed;
    this.#refusedByChecks(error);
    this.#setting.oracle.refused(this.trace, error);
    this.#end(left ? 'client_left' : 'complete');
  }

  /** Behind a prompt that is refused beside the call, the answer is left where it is. */
  #refusedByChecks(error: GatewayError): void {
    const { trace } = this;
    const last = trace.tries.at(-1);
    const isSpared = this.texts?.sparedBy(error, this.#call.model.id);
    if (isSpared === undefined) return;
    trace.isSpared = isSpared;
    if (last?.state !== 'answered') return;
    if (trace.reported === undefined) this.#reportLeft();
    if (!isSpared) return;
    last.reported = trace.reported;
    if (trace.reported?.isWhole === true && !trace.reported.isGuess) last.bill = trace.reported.usage;
  }

  /** What the meter has read of an answer that was left where it is. */
  #reportLeft(): void {
    const { trace } = this;
    const { answer } = this.#wire;
    const isWhole = !trace.stream && answer!.cutAfter === undefined;
    if (isWhole) this.#report(reportedOf(trace.inputTokens, answer!));
    else if (this.#setting.chance.oneIn(2))
      this.#report({ usage: { input: trace.inputTokens, output: 0 }, isGuess: true, isWhole: false, seen: 0 });
  }

  /** A head has come: of an answer that is on its way, or of one that was given before. */
  #begun({ status, headers, body }: Answer): void {
    this.trace.status = status;
    if (headers['idempotent-replayed'] === 'true') {
      this.#setting.oracle.limits.passed(this.trace);
      this.#setting.oracle.keys.repeated(this.trace, Buffer.from(body as Uint8Array).toString());
      this.#end('complete');
      return;
    }
    this.#isReading = true;
    if (this.trace.served !== undefined) {
      this.#deliver(body as Uint8Array, this.trace.served);
      return;
    }
    const number = headers[tryHeader];
    if (number !== undefined) {
      this.#raced(this.trace.tries[Number(number) - 1], body as Uint8Array | AsyncIterable<Uint8Array>);
      return;
    }
    // It may be kept under a key although its client has left.
    if (body instanceof Uint8Array) this.#setting.oracle.keys.answered(this.trace, Buffer.from(body).toString());
    else if (typeof body !== 'string') this.#body = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    if (this.trace.stream) this.texts?.begin(this.#process.transform!, this.#exchange);
    this.#next();
  }

  /** An answer from the cache: its head, its body and its end, or what comes of them. */
  #deliver(body: Uint8Array, { breaksAt }: Cached): void {
    const exchange = this.#exchange;
    const { schedule, chance, oracle } = this.#setting;
    // It is whole from the beginning, so that it may be kept under a key although its client has left.
    oracle.keys.answered(this.trace, Buffer.from(body).toString());
    const step = (what: Cached['breaksAt'], work: () => void) =>
      schedule.after(chance.delay(5), this.#process.life, `cached ${what}`, () => {
        if (this.#isOver) return;
        const broke = exchange.aborted ?? (breaksAt === what ? new GatewayError('internal', 'cut') : undefined);
        if (broke === undefined) work();
        else if (broke.kind === 'client_left') this.#end('client_left');
        else {
          exchange.fail(broke);
          this.#end('failed');
        }
      });
    const sendBody = () => {
      exchange.watcher?.chunk(body);
      this.trace.firstByte = true;
      step('end', () => this.#end('complete'));
    };
    step('head', () => {
      exchange.watcher?.head(200, {});
      step('body', sendBody);
    });
  }

  #raced(winner: Try | undefined, body: Uint8Array | AsyncIterable<Uint8Array>): void {
    const { trace } = this;
    this.#setting.oracle.hedges.decided(trace, winner);
    // What was shown of it so far counts from now on.
    if (trace.stream) trace.seen = winner?.seen ?? 0;
    if (body instanceof Uint8Array) {
      this.#text = Buffer.from(body).toString();
      this.#readAll();
    } else this.#read(body[Symbol.asyncIterator]());
  }

  /** For an answer that won a race, the vendor's side and the meter are in the body itself. */
  #read(body: AsyncIterator<Uint8Array>): void {
    const exchange = this.#exchange;
    if (exchange.clientDisconnected !== undefined) exchange.shouldKeepReading(this.#process.host.clock.monotonic(), 1);
    if (exchange.aborted !== undefined) {
      this.#end(exchange.aborted.kind === 'client_left' ? 'client_left' : 'failed');
      return;
    }
    body.next().then(
      ({ done, value }) => {
        if (this.#isOver) return;
        if (done === true) {
          this.#readAll();
          return;
        }
        this.trace.firstByte = true;
        this.#text += Buffer.from(value).toString();
        this.#read(body);
      },
      (error: GatewayError) => {
        if (exchange.aborted === undefined) exchange.fail(error);
        this.#end(exchange.aborted?.kind === 'client_left' ? 'client_left' : 'failed');
      },
    );
  }

  #readAll(): void {
    this.trace.firstByte = true;
    this.#setting.oracle.keys.answered(this.trace, this.#text);
    this.#end('complete');
  }

  #next(): void {
    const { schedule, chance } = this.#setting;
    const { chunkMeanMs } = this.#wire.answer!;
    schedule.after(chance.delay(chunkMeanMs), this.#process.life, 'chunk', () => this.#pull());
  }

  #pull(): void {
    const { chunks, cutAfter } = this.#wire.answer!;
    if (this.#isOver) return;
    if (this.#exchange.clientDisconnected !== undefined)
      this.#exchange.shouldKeepReading(this.#process.host.clock.monotonic(), 1);
    if (this.#exchange.aborted !== undefined) this.#end('client_left');
    else if (cutAfter === this.#chunk) this.#break(new GatewayError('upstream_failed', 'cut'));
    else if (this.#chunk === chunks.length) this.#pullLast();
    else if (this.#show(chunks[this.#chunk]!)) {
      this.#chunk += 1;
      this.#judged(this.trace.stream ? this.texts?.chunk(this.#chunk - 1) : undefined, () => this.#next());
    } else this.#break(new GatewayError('insufficient_balance', 'used up'));
  }

  /** Goes on when checks have let it pass, or ends with their error. */
  #judged(verdict: Promise<void> | undefined, proceed: () => void): void {
    if (verdict === undefined) {
      proceed();
      return;
    }
    verdict.then(
      () => {
        if (!this.#isOver) proceed();
      },
      (error: GatewayError) => {
        if (!this.#isOver) this.#break(error);
      },
    );
  }

  /** A chunk goes to the client, past the meter if it is a stream. false: it must end. */
  #show(tokens: number): boolean {
    const { trace } = this;
    trace.firstByte = true;
    void this.#body?.next().then(({ value }) => {
      this.#text += Buffer.from(value ?? '').toString();
    });
    if (!this.#call.call.stream) return true;
    trace.seen += tokens;
    const goesOn = this.#exchange.get(spendGuard).observe(trace.seen);
    this.#setting.oracle.observed(trace, goesOn);
    return goesOn;
  }

  /** The body's end is pulled before the exchange ends, as the writer does it. */
  #pullLast(): void {
    this.#judged(this.trace.stream ? this.texts?.end() : undefined, () => {
      if (this.#body === undefined) {
        this.#finish();
        return;
      }
      void this.#body.next().then(() => {
        if (this.#isOver) return;
        this.#setting.oracle.keys.answered(this.trace, this.#text);
        this.#finish();
      });
    });
  }

  /** The protocol's terminal event has come. */
  #finish(): void {
    this.trace.firstByte = true;
    const reported = reportedOf(this.#call.call.inputTokens, this.#wire.answer!);
    this.#report(reported, reported.isGuess ? reported.usage : heard(reported.usage, this.trace.id));
    this.#end('complete');
  }

  #break(error: GatewayError): void {
    const { chance } = this.#setting;
    const { seen, inputTokens } = this.trace;
    this.#exchange.fail(error);
    const usage = { input: inputTokens, output: seen };
    if (chance.oneIn(2)) this.#report({ usage, isGuess: chance.oneIn(2), isWhole: false, seen });
    this.#end('failed');
  }

  #leave(): void {
    const { trace } = this;
    if (this.#isOver) return;
    trace.clientLeft = true;
    const isStopped = this.#exchange.aborted !== undefined;
    // The client pays for the first of several running tries, by whose vendor it is read on or not.
    const running = trace.winner ?? trace.tries.find(({ over }) => !over);
    this.#exchange.disconnect(this.#process.host.clock.monotonic());
    if (this.#call.key === undefined && !isStopped)
      this.#setting.oracle.hedges.left(trace, running, this.#exchange.aborted === undefined);
    // What it asked for may be finished all the same, for the one that asks again under its key.
    if (this.#exchange.aborted === undefined) return;
    if (running?.received === true) trace.payer = running;
    // Before the head the rejected attempt ends it; a body's reader learns of it at once.
    if (this.#isReading) this.#end('client_left');
  }

  /** `usage`: what the meter has read of it. */
  #report(reported: ReportedUsage, usage = reported.usage): void {
    this.trace.reported = reported;
    this.#exchange.set(usageReport, reportOf(this.trace.id, reported, usage));
  }

  #end(kind: Outcome['kind']): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#wire.answer !== undefined && this.trace.status === 200)
      this.texts?.got(kind === 'complete', this.#wire.answer.chunks.length);
    if (this.trace.hedgeAfterMs === undefined) this.#ended(kind);
    // The answer's last bytes go out in the same event: nothing comes between what is recorded before them and the end.
    if (kind !== 'client_left') void this.#exchange.readyToEnd();
    void this.#exchange.end({ kind, status: this.trace.status, bytesOut: 0, totalMs: 0 });
  }

  /** Where two tries may have run, the one that lost has come to its end too. */
  #ended(kind: Outcome['kind']): void {
    const { trace } = this;
    const { oracle, line } = this.#setting;
    trace.reported ??= (trace.winner ?? trace.payer)?.reported;
    trace.ended = true;
    trace.endedLine = line();
    oracle.ended(trace, kind, this.#process.host.clock.now());
  }
}

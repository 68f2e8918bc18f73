/** Copies the bodies of recorded requests as they pass, masks them when the request has ended, and queues them for storage. */

import type { Exchange, Host, Next, Outcome } from '../../../core/contract/contract.ts';
import type { Answer, AnswerWatcher } from '../../../core/contract/message.ts';
import { caller } from '../../common/domain/accounts.ts';
import type { Recording } from '../../common/domain/admin/recorded-bodies.ts';
import { call } from '../../common/domain/calls.ts';
import { streamedForm } from '../../common/kit/forms/streamed-form.ts';
import { noId } from '../../common/rollups/sums-in-memory.ts';
import { RowQueue } from '../queue.ts';
import { type Excerpt, type Kept, OpaqueExcerpt, TextExcerpt } from './excerpt.ts';
import { keptForm, keptParts } from './form.ts';
import { maskBody } from './mask.ts';
import type { BodyPolicy, Choice } from './policy.ts';
import type { BodiesConfig } from './settings.ts';
import type { BodyStore } from './store.ts';

export class BodyRecorder {
  readonly #host: Pick<Host, 'log' | 'clock' | 'random'>;
  readonly #queue: RowQueue;
  #policy: BodyPolicy | undefined;
  #recordings: readonly Recording[] = [];
  /** Bytes held for requests that have not ended. */
  #held = 0;
  #dropped = 0;
  /** The only check on a request while nothing is recorded. */
  isOn = false;

  constructor(host: Pick<Host, 'log' | 'clock' | 'random'>, store: BodyStore) {
    this.#host = host;
    this.#queue = new RowQueue((rows) => store.insert(rows), host, 'bodies of requests');
  }

  get policy(): BodyPolicy | undefined {
    return this.#policy;
  }

  /** Half of the memory is for running requests, half for waiting rows. undefined: nothing is recorded. */
  applyConfig(policy: BodyPolicy | undefined, recordings: readonly Recording[] = this.#recordings): void {
    this.#policy = policy;
    this.#recordings = recordings;
    if (policy !== undefined) this.#queue.applyConfig(policy.config.memory / 2);
    this.isOn = policy !== undefined && (policy.config.of.length > 0 || recordings.length > 0);
  }

  async run(exchange: Exchange, next: Next): Promise<Answer> {
    try {
      return await next();
    } finally {
      // The request's body is still in memory here, and account and model are known.
      this.#begin(exchange);
    }
  }

  /** Writes the waiting rows if they are due, and logs losses. */
  advance(): Promise<void> | undefined {
    this.#logDropped();
    return this.#queue.advance();
  }

  /** Writes all waiting rows. */
  flush(): Promise<void> {
    this.#logDropped();
    return this.#queue.flush();
  }

  #logDropped(): void {
    if (this.#dropped === 0) return;
    const requests = this.#dropped;
    this.#dropped = 0;
    this.#host.log.warn({ requests }, 'bodies were not kept: their memory (request-log.bodies.memory) is used up');
  }

  #begin(exchange: Exchange): void {
    try {
      if (exchange.find(caller)?.retention === 'none') return;
      const policy = this.#policy;
      const { clock, random } = this.#host;
      const requestedCall = { ...requestFacts(exchange), model: exchange.find(call)?.model };
      const choice = policy?.choose(requestedCall, this.#recordings, clock.now(), () => random.fraction());
      if (policy !== undefined && choice !== undefined) this.#watch(exchange, policy, choice);
    } catch (error) {
      exchange.log.error({ error }, 'the bodies of a request could not be looked at');
    }
  }

  #watch(exchange: Exchange, policy: BodyPolicy, choice: Choice): void {
    let held = 0;
    const take = (bytes: number): boolean => {
      if (this.#held + bytes > policy.config.memory / 2) return false;
      this.#held += bytes;
      held += bytes;
      return true;
    };
    const pair = new BodyPair(exchange, policy.config, take);
    exchange.watch(pair);
    exchange.defer((outcome) => {
      this.#held -= held;
      if (choice === 'errors' && !isError(outcome)) return;
      if (pair.refused) this.#dropped++;
      else this.#queue.push(JSON.stringify(rowOf(exchange, pair, policy, this.#host.clock.now())));
    });
  }
}

function requestFacts(exchange: Exchange) {
  const who = exchange.find(caller);
  return { accountId: who?.accountId, keyId: who?.keyId };
}

function isError({ kind, status }: Outcome): boolean {
  return kind === 'failed' || (kind === 'complete' && status >= 400);
}

/** Excerpts of the request and the answer of one exchange. */
class BodyPair implements AnswerWatcher {
  readonly requestType: string | undefined;
  answerType: string | undefined;
  readonly #config: BodiesConfig;
  readonly #take: (bytes: number) => boolean;
  readonly #request: Excerpt;
  #answer: Excerpt;
  #failed = false;

  constructor(exchange: Exchange, config: BodiesConfig, take: (bytes: number) => boolean) {
    const { request } = exchange;
    this.#config = config;
    this.#take = take;
    const type = request.headers['content-type'];
    this.requestType = typeOf(type);
    const parts = exchange.find(streamedForm);
    const isForm = parts === undefined && type?.startsWith('multipart/') === true;
    const form = isForm ? keptForm(request.body, type, config.largest) : parts && keptParts(parts, config.largest);
    this.#request = form === undefined ? this.#excerptOf(this.requestType) : { add() {}, end: () => form };
    if (request.body.length > 0) this.#request.add(request.body);
    this.#answer = this.#excerptOf(undefined);
  }

  get refused(): boolean {
    const excerpts = [this.#request, this.#answer];
    return this.#failed || excerpts.some((excerpt) => excerpt instanceof TextExcerpt && excerpt.refused);
  }

  head(_status: number, headers: Readonly<Record<string, unknown>>): void {
    const type = headers['content-type'];
    this.answerType = typeOf(typeof type === 'string' ? type : undefined);
    const encoding = headers['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity') this.#answer = new OpaqueExcerpt(`${encoding}`);
    else this.#answer = this.#excerptOf(this.answerType);
  }

  chunk(bytes: Uint8Array): void {
    try {
      this.#answer.add(bytes);
    } catch {
      // A failure of the recording must not affect the answer.
      this.#failed = true;
    }
  }

  end(): { request: Kept | undefined; answer: Kept | undefined } {
    return { request: this.#request.end(), answer: this.#answer.end() };
  }

  #excerptOf(type: string | undefined): Excerpt {
    if (isText(type)) return new TextExcerpt(this.#config.largest, this.#take);
    return new OpaqueExcerpt(type ?? '');
  }
}

/** The media type without parameters; undefined if malformed. */
function typeOf(contentType: string | undefined): string | undefined {
  return /^\s*([\w.+-]{1,60}\/[\w.+-]{1,60})\s*(?:;|$)/.exec(contentType ?? '')?.[1]?.toLowerCase();
}

/** A body without a type is usually JSON. */
function isText(type: string | undefined): boolean {
  return type === undefined || /^text\/|[/+](?:json|xml|x-ndjson|x-www-form-urlencoded)$/.test(type);
}

/** Columns of `request_bodies`. */
function rowOf(exchange: Exchange, pair: BodyPair, { secrets, config }: BodyPolicy, now: number): object {
  const { request, answer } = pair.end();
  return {
    request_id: exchange.id,
    account_id: exchange.find(caller)?.accountId ?? noId,
    received_at: new Date(exchange.receivedAt).toISOString(),
    expires_at: new Date(now + config.retention).toISOString(),
    request: request && maskBody(request, secrets),
    request_type: pair.requestType,
    request_bytes: request?.bytes,
    request_left_out: request?.omittedBytes,
    answer: answer && maskBody(answer, secrets),
    answer_type: pair.answerType,
    answer_bytes: answer?.bytes,
    answer_left_out: answer?.omittedBytes,
  };
}

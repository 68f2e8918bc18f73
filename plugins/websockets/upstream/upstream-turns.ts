/** Sends the turns of one client's connection to upstreams over WebSocket: chooses the connection, and falls back to HTTP. */
import { defineContextKey, type UpstreamRequest } from '../../../core/contract/contract.ts';
import type { Sending } from '../../../core/contract/exchange.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Answer, Headers } from '../../../core/contract/message.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { asBuffer } from '../../../core/json/json.ts';
import { UpstreamSocket } from '../relay/upstream.ts';
import { type RefusedTurn, TurnConnection } from './turn-connection.ts';
import type { TurnMessage } from './turn-message.ts';

/** Set before the chain, for a turn of a connection that may use one to the upstream. */
export const upstreamTurns = defineContextKey<UpstreamTurns>('upstream turns');

/** How long a connection is kept between two turns. */
const keptMs = 5 * 60_000;

/** Upstreams that refused to upgrade, each for a while. */
export class UpgradeRefusals {
  readonly #until = new Map<string, number>();
  readonly #clock: Pick<Clock, 'monotonic'>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  has(place: string): boolean {
    return (this.#until.get(place) ?? 0) > this.#clock.monotonic();
  }

  add(place: string): void {
    if (this.#until.size >= mostRefusals) this.#until.clear();
    this.#until.set(place, this.#clock.monotonic() + refusalMs);
  }
}

const refusalMs = 10 * 60_000;
const mostRefusals = 1_000;

export interface UpstreamTurnsTools {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly refusals: UpgradeRefusals;
  /** Bytes of one message at most. */
  maxBytes(): number;
}

export class UpstreamTurns {
  readonly #tools: UpstreamTurnsTools;
  #connection: TurnConnection | undefined;
  #isBusy = false;
  #isOver = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(tools: UpstreamTurnsTools) {
    this.#tools = tools;
  }

  /** undefined: the turn goes over HTTP. `sent`: called with each message. Rejects with an UpstreamError. */
  async send(
    request: UpstreamRequest,
    sending: Sending,
    sent: (message: TurnMessage, body: Uint8Array) => void,
  ): Promise<Answer | undefined> {
    const place = placeOf(request);
    if (this.#isBusy || this.#isOver || this.#tools.refusals.has(place)) return undefined;
    this.#isBusy = true;
    clearTimeout(this.#timer);
    const stop = () => this.#connection?.terminate();
    sending.signal.addEventListener('abort', stop);
    const free = () => {
      sending.signal.removeEventListener('abort', stop);
      this.#free();
    };
    try {
      const answer = await this.#send(request, place, sending, sent);
      if (answer?.status === 200) this.#connection!.onceEnded(free);
      else free();
      return answer;
    } catch (error) {
      free();
      throw error;
    }
  }

  /** No further turn comes; one that runs is finished. */
  close(): void {
    this.#isOver = true;
    if (!this.#isBusy) this.#drop();
  }

  async #send(
    request: UpstreamRequest,
    place: string,
    sending: Sending,
    sent: (message: TurnMessage, body: Uint8Array) => void,
  ): Promise<Answer | undefined> {
    const body = wholeOf(request.body);
    for (let tries = 1; ; tries += 1) {
      const connection = await this.#connect(request, place, sending.signal);
      if (!(connection instanceof TurnConnection)) {
        if (tries === 1) return connection;
        throw new UpstreamError('connect', 'the upstream refuses to connect again');
      }
      const message = connection.prepare(body);
      if (tries === 1) await sending.begin();
      sent(message, body);
      const answer = await connection.send(message, request);
      if (!('error' in answer)) return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: answer };
      if (tries > 1 || !isLost(answer, message)) return refused(answer);
      if (answer.error['code'] === connectionLimit) this.#drop();
    }
  }

  async #connect(
    request: UpstreamRequest,
    place: string,
    signal: AbortSignal,
  ): Promise<TurnConnection | Answer | undefined> {
    const kept = this.#connection;
    if (kept?.place === place && (await kept.isUsable())) return kept;
    this.#drop();
    const opened = await UpstreamSocket.open(request, { signal, maxBytes: this.#tools.maxBytes(), isSilent: true });
    if (!(opened instanceof UpstreamSocket)) {
      if (isAboutTheCall(opened.status)) return opened;
      this.#tools.refusals.add(place);
      return undefined;
    }
    this.#connection = new TurnConnection(place, opened, () => this.#tools.clock.monotonic());
    return this.#connection;
  }

  #free(): void {
    this.#isBusy = false;
    if (this.#isOver) this.#drop();
    else this.#timer = setTimeout(() => this.#drop(), keptMs).unref();
  }

  #drop(): void {
    clearTimeout(this.#timer);
    this.#connection?.close();
    this.#connection = undefined;
  }
}

/** Turns with the same text share a connection. */
function placeOf({ credential, url, network }: UpstreamRequest): string {
  return JSON.stringify([credential, url, network?.name]);
}

function wholeOf(body: UpstreamRequest['body']): Uint8Array {
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  if (body !== undefined && 'open' in body) throw new Error('the body of a turn is in memory');
  return Buffer.concat((body ?? []).map(asBuffer));
}

const connectionLimit = 'websocket_connection_limit_reached';

/** The turn did not run, and can be sent once more: over another connection, or with the whole conversation. */
function isLost({ error }: RefusedTurn, { isContinuation }: TurnMessage): boolean {
  const { code } = error;
  return code === connectionLimit || (isContinuation && code === 'previous_response_not_found');
}

/** Statuses that a request over HTTP would get as well; others are about the upgrade. */
function isAboutTheCall(status: number): boolean {
  return status === 401 || status === 402 || status === 429 || (status >= 500 && status !== 501);
}

function refused({ status, headers, error }: RefusedTurn): Answer {
  const kept: Headers = { 'content-type': 'application/json' };
  for (const [name, value] of Object.entries(headers)) kept[name.toLowerCase()] = String(value);
  return { status, headers: kept, body: JSON.stringify({ error }) };
}

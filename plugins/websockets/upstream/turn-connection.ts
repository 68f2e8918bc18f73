/** A connection to an upstream for turns of responses, one after the other. */
import type { UpstreamRequest } from '../../../core/contract/contract.ts';
import { objectOf, textOf, tryParse } from '../../../core/json/json.ts';
import { findMember, scanObject } from '../../../core/json/splice.ts';
import type { Message, UpstreamSocket } from '../relay/upstream.ts';
import { TurnAnswer } from './turn-answer.ts';
import { type KnownConversation, type TurnMessage, turnMessage } from './turn-message.ts';

/** Silence after which a connection is pinged before the next turn: a turn sent over a lost one might have run. */
const tryAfterMs = 5_000;
const tryForMs = 2_000;

/** An error instead of an answer: the turn was refused. */
export interface RefusedTurn {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly error: Readonly<Record<string, unknown>>;
}

interface Running {
  readonly answer: TurnAnswer;
  readonly message: TurnMessage;
  refused?: RefusedTurn | undefined;
}

const lastTypes = new Set(['response.completed', 'response.incomplete', 'response.failed', 'error']);

export class TurnConnection {
  /** Credential, address and network, which all turns of a connection share. */
  readonly place: string;
  readonly #socket: UpstreamSocket;
  readonly #now: () => number;
  #running: Running | undefined;
  #known: KnownConversation | undefined;
  #usedAt: number;
  #onEnd: (() => void) | undefined;

  constructor(place: string, socket: UpstreamSocket, now: () => number) {
    this.place = place;
    this.#socket = socket;
    this.#now = now;
    this.#usedAt = now();
    socket.listen(
      (message) => this.#receive(message),
      (code) => this.#closed(code),
    );
  }

  /** Whether it can take a turn. */
  async isUsable(): Promise<boolean> {
    if (!this.#socket.isOpen) return false;
    return this.#now() - this.#usedAt < tryAfterMs || (await this.#socket.isAlive(tryForMs));
  }

  prepare(body: Uint8Array): TurnMessage {
    return turnMessage(body, this.#known);
  }

  /** Sends a turn. Rejects with an UpstreamError. */
  async send(
    message: TurnMessage,
    { firstByteTimeoutMs, idleTimeoutMs }: Pick<UpstreamRequest, 'firstByteTimeoutMs' | 'idleTimeoutMs'>,
  ): Promise<TurnAnswer | RefusedTurn> {
    const answer = new TurnAnswer({
      firstByteTimeoutMs,
      idleTimeoutMs,
      pause: () => this.#socket.pause(),
      resume: () => this.#socket.resume(),
      abandon: () => this.#socket.terminate(),
    });
    const running: Running = { answer, message };
    this.#running = running;
    // After a failed turn there is no response to continue.
    this.#known = undefined;
    void this.#socket.send({ data: message.data, isBinary: false });
    await answer.begun();
    return running.refused ?? answer;
  }

  /** Calls back when no turn runs: after its last message, or when the connection is lost. */
  onceEnded(call: () => void): void {
    if (this.#running === undefined) call();
    else this.#onEnd = call;
  }

  /** Ends the connection and the running turn. */
  terminate(): void {
    this.#socket.terminate();
  }

  close(): void {
    this.#socket.close();
  }

  #receive({ data }: Message): void {
    this.#usedAt = this.#now();
    const running = this.#running;
    const type = typeOf(data);
    // Between turns come announcements, or the error with which an upstream closes the connection.
    if (running !== undefined) this.#pass(running, type, data.toString('utf8'));
    else if (type === 'error') this.#socket.close();
  }

  #pass(running: Running, type: string, text: string): void {
    const { answer, message } = running;
    if (type === 'error' && !answer.hasBegun) running.refused = refusalOf(text);
    if (running.refused === undefined) answer.push(type, text);
    if (!lastTypes.has(type)) return;
    if (type === 'response.completed' || type === 'response.incomplete') this.#known = message.knownAfter(text);
    if (type === 'error' && running.refused === undefined) this.#socket.close();
    answer.end();
    this.#finish();
  }

  #finish(): void {
    const call = this.#onEnd;
    this.#running = undefined;
    this.#onEnd = undefined;
    call?.();
  }

  #closed(code: number): void {
    this.#running?.answer.fail(`the upstream closed the connection with ${code}`);
    this.#finish();
  }
}

/** The type of an event; empty for anything else. */
function typeOf(data: Buffer): string {
  const start = data.toString('latin1', 0, 100);
  const first = /^\s*\{\s*"type"\s*:\s*"([\w.]+)"/.exec(start)?.[1];
  if (first !== undefined) return first;
  try {
    const member = findMember(scanObject(data), 'type');
    return member === undefined
      ? ''
      : (/^"([\w.]+)"$/.exec(data.toString('utf8', member.valueStart, member.end))?.[1] ?? '');
  } catch {
    return '';
  }
}

/** An error with a status is an answer that would have come over HTTP. */
function refusalOf(text: string): RefusedTurn | undefined {
  const envelope = objectOf(tryParse(text)) ?? {};
  const status = envelope['status'] ?? envelope['status_code'];
  if (typeof status !== 'number' || status < 400 || status > 599) return undefined;
  const error = objectOf(envelope['error']) ?? { message: textOf(envelope['message']), code: textOf(envelope['code']) };
  return { status, headers: objectOf(envelope['headers']) ?? {}, error };
}

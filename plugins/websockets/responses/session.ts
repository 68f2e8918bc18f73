/** Responses over WebSocket: turns in their order, each a request of its own, and the state that connects them. */
import type { DirectAnswer, Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { toGatewayError } from '../../../core/contract/upstream-failures.ts';
import type { Caller } from '../../common/domain/accounts.ts';
import { errorShape } from '../../common/domain/error-shape.ts';
import { type Connection, closeCode, type Session, upgradeFields } from '../connection.ts';
import type { Connections } from '../connections.ts';
import { type UpstreamTurns, upstreamTurns } from '../upstream/upstream-turns.ts';
import { AnswerRelay } from './answer-relay.ts';
import { type Ending, errorMessage, errorOf, inLane, notFound, streamErrorMessage, warmUpMessages } from './events.ts';
import { bodyOf, itemsOf, joinItems, readTurn, type Turn } from './turn.ts';

const endpoint = '/v1/responses';
/** Error bodies are read up to this size. */
const longestError = 1024 * 1024;

/** The last response of the connection, which the next turn may continue. */
interface Remembered {
  readonly id: string;
  /** The conversation up to its end, as JSON texts with commas between them. */
  readonly items: Buffer;
  /** It can be found where responses are kept, too. */
  readonly stored: boolean;
}

/** The members of a turn that its answer depends on. */
interface TurnRequest {
  readonly streamId: string | undefined;
  readonly stored: boolean;
  /** The response that this connection has, and the turn continues. */
  readonly previousId: string | undefined;
}

export class ResponsesSession implements Session {
  readonly #connection: Connection;
  readonly #connections: Connections;
  readonly #host: Pick<Host, 'perform' | 'clock' | 'log' | 'find'>;
  readonly #upstream: UpstreamTurns;
  readonly #caller: Caller | undefined;
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #running: AbortController | undefined;
  #remembered: Remembered | undefined;
  /** Set once no further turn is begun: with what the connection is closed then. */
  #ending: (() => void) | undefined;

  constructor(
    connection: Connection,
    connections: Connections,
    host: Pick<Host, 'perform' | 'clock' | 'log' | 'find'>,
    upstream: UpstreamTurns,
    caller: Caller | undefined,
  ) {
    this.#connection = connection;
    this.#connections = connections;
    this.#host = host;
    this.#upstream = upstream;
    this.#caller = caller;
  }

  get isIdle(): boolean {
    return this.#running === undefined;
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    if (this.#ending !== undefined) return;
    if (isBinary) {
      this.refuse(new GatewayError('invalid_request', 'Messages must be text.'));
      this.#connection.close(closeCode.unsupported, 'messages must be text');
      return;
    }
    if (this.#running === undefined) {
      this.#running = new AbortController();
      return void this.#runAll(this.#begin(data));
    }
    const refusal = this.#refusal(data);
    if (refusal !== undefined) return void this.refuse(refusal);
    this.#queue.push(data);
    this.#queuedBytes += data.length;
  }

  refuse(error: GatewayError): void {
    this.#connection.say(errorOf(error));
  }

  onClose(): void {
    this.#connection.keep(-this.#queuedBytes);
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#forget();
    this.#running?.abort();
    this.#upstream.close();
  }

  drain(): void {
    this.#endWith(() => this.#connection.close(closeCode.restart, 'the gateway restarts'));
  }

  expire(): void {
    this.#endWith(() => {
      void this.#sendError(openTooLong());
      this.#connection.close(closeCode.goingAway, 'open for too long');
    });
  }

  #endWith(end: () => void): void {
    if (this.#ending !== undefined) return;
    this.#ending = end;
    if (this.#running === undefined) end();
  }

  /** Why a further turn cannot wait. */
  #refusal(data: Buffer): GatewayError | undefined {
    const { queue, message } = this.#connections.config;
    if (this.#queue.length >= queue || this.#queuedBytes + data.length > message)
      return new GatewayError('rate_limited', 'Too many turns of this connection wait for the one that runs.', {
        code: 'too_many_queued_turns',
      });
    return this.#connection.keep(data.length) ? undefined : memoryUsedUp();
  }

  async #runAll(first: Promise<void>): Promise<void> {
    for (let turn: Promise<void> | undefined = first; turn !== undefined; turn = this.#next()) {
      try {
        await turn;
      } catch (error) {
        const shown = toGatewayError(error);
        if (shown.kind === 'internal') {
          const about = upgradeFields(this.#connection.head, this.#caller);
          this.#host.log.error({ ...about, error }, 'a turn failed inside the gateway');
        }
        await this.#sendError(shown);
      }
    }
    this.#running = undefined;
    this.#ending?.();
  }

  #next(): Promise<void> | undefined {
    if (this.#ending !== undefined || !this.#connection.isOpen) return undefined;
    const data = this.#queue.shift();
    if (data === undefined) return undefined;
    this.#queuedBytes -= data.length;
    this.#connection.keep(-data.length);
    return this.#begin(data);
  }

  /** Not async, as what follows: a turn may take long, and a frame that waits would keep its message as long. */
  #begin(data: Buffer): Promise<void> {
    try {
      return this.#run(readTurn(data));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #run(turn: Turn): Promise<void> {
    const { previousId, streamId } = turn;
    // Where nothing may be kept, `store` is false whatever the turn says.
    const stored = turn.stored && this.#caller?.retention !== 'none';
    const before = this.#remembered?.id === previousId ? this.#remembered : undefined;
    // The connection does not have what the conversation had before.
    const own = turn.inConversation ? undefined : itemsOf(turn);
    const isKnown = previousId === undefined || before !== undefined;
    const items = isKnown && own !== undefined ? joinItems([before?.items ?? nothing, own]) : undefined;
    if (!turn.generate) return this.#warmUp(turn, items);
    // An answer that is kept elsewhere is continued there: an upstream may have more of it than its items.
    const continuesHere = previousId !== undefined && before?.stored === false;
    if (continuesHere && items === undefined) throw notFound(previousId);
    this.#connections.countsOf('responses').turns += 1;
    const answer = this.#perform(bodyOf(turn, continuesHere ? items : undefined));
    const kept = items !== undefined && this.#connection.keep(items.length) ? items : undefined;
    const requested = { streamId, stored, previousId: continuesHere ? previousId : undefined };
    return this.#follow(answer, requested, kept, before !== undefined);
  }

  /** `items`: the conversation up to the answer; undefined: it cannot be continued. */
  async #follow(
    answer: Promise<DirectAnswer>,
    requested: TurnRequest,
    items: Buffer | undefined,
    continues: boolean,
  ): Promise<void> {
    let ending: Ending | undefined;
    try {
      ending = await this.#answer(await answer, requested);
    } finally {
      if (items !== undefined) this.#connection.keep(-items.length);
    }
    // A failed turn leaves nothing to go on from.
    if (ending === undefined) {
      if (continues) this.#forget();
    } else if (items !== undefined) this.#remember(ending.id, joinItems([items, ending.items]), requested.stored);
    else this.#forget();
  }

  /** Prepares state without an answer: nothing runs and nothing is charged. */
  async #warmUp(turn: Turn, items: Buffer | undefined): Promise<void> {
    const { previousId, streamId, model } = turn;
    if (items === undefined) throw previousId === undefined ? noInput() : notFound(previousId);
    const { id, messages } = warmUpMessages(model, previousId, this.#host.clock.now());
    this.#remember(id, items, false);
    for (const message of messages) await this.#connection.send(inLane(message, streamId));
  }

  #perform(body: Uint8Array): Promise<DirectAnswer> {
    const { headers, search, remoteAddress } = this.#connection.head;
    return this.#host.perform({
      method: 'POST',
      path: endpoint + search,
      headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
      body,
      remoteAddress,
      signal: this.#running!.signal,
      prepare: (exchange) => exchange.set(upstreamTurns, this.#upstream),
    });
  }

  /** Sends the answer's events as they come. undefined: there is nothing that could be continued. */
  async #answer(answer: DirectAnswer, { streamId, previousId }: TurnRequest): Promise<Ending | undefined> {
    const send = (message: string) => this.#connection.send(inLane(message, streamId));
    if (answer.status < 300) return this.#relay(answer, previousId, send);
    await send(errorMessage(answer.status, answer.headers, await read(answer)));
    await answer.ended;
    return undefined;
  }

  async #relay(
    { body, ended }: DirectAnswer,
    previousId: string | undefined,
    send: (message: string) => Promise<void> | undefined,
  ): Promise<Ending | undefined> {
    const relay = new AnswerRelay(previousId, send);
    for await (const chunk of untilBroken(body)) {
      const waiting = relay.feed(chunk);
      if (waiting !== undefined) await waiting;
    }
    const { error } = await ended;
    if (relay.hasEnded) return relay.ending;
    const shown = error ?? brokeOff();
    await send(relay.error === undefined ? this.#shown(shown) : streamErrorMessage(relay.error, shown.status));
    return undefined;
  }

  #remember(id: string, items: Buffer, stored: boolean): void {
    this.#forget();
    if (this.#connection.isOpen && this.#connection.keep(items.length)) this.#remembered = { id, items, stored };
  }

  #forget(): void {
    if (this.#remembered !== undefined) this.#connection.keep(-this.#remembered.items.length);
    this.#remembered = undefined;
  }

  #sendError(error: GatewayError): Promise<void> | undefined {
    return this.#connection.send(this.#shown(error));
  }

  #shown(error: GatewayError): string {
    return errorOf(error, this.#host.find(errorShape)?.members(error, ''));
  }
}

const nothing = Buffer.alloc(0);

/** Ends when the answer breaks off; the cause is known once the request has ended. */
async function* untilBroken(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    yield* body;
  } catch {}
}

async function read({ body }: DirectAnswer): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > longestError) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const brokeOff = () => new GatewayError('upstream_failed', 'The answer broke off.', { shouldRetry: false });
const openTooLong = () =>
  new GatewayError(
    'invalid_request',
    'This connection has been open as long as a WebSocket may be. Open a new one to continue.',
    { code: 'websocket_connection_limit_reached' },
  );
const memoryUsedUp = () => new GatewayError('overloaded', 'The gateway keeps too many conversations at the moment.');
const noInput = () =>
  new GatewayError('invalid_request', 'The field "input" must be a string or a list.', { field: 'input' });

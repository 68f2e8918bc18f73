/** Reads and decodes request bodies within the limits of one body, of all bodies, and of an account. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { bodyOwner } from '../contract/contract.ts';
import { GatewayError } from '../contract/errors.ts';
import { parseAhead, slicedAboveBytes } from '../json/request-body.ts';
import { BodyBudget, type BudgetLimits } from './bounds/body-budget.ts';
import { FairTurns } from './bounds/fair-turns.ts';
import { decodeChunks, type Encoding, encodingOf, maxDecodedBytes, maxRatio } from './content-encoding.ts';
import { clientDisconnected, type LiveExchange } from './exchange.ts';
import { emptyBody, type Incoming } from './incoming-request.ts';

export interface BodyLimits extends BudgetLimits {
  /** One body, encoded or decoded. */
  readonly maxBytes: number;
  /** Encoded bodies that are decoded concurrently. */
  readonly maxDecoding: number;
  /** Members and elements of a JSON body that is parsed in slices. */
  readonly maxValues: number;
}

/** Encoded bodies of one account that may wait to be decoded. */
const maxWaiting = 1_000;
/** Bodies up to this size, if not encoded, are read before plugins can `admit` the request. */
const smallBytes = 64 * 1024;

/** Whether reading the body may be expensive: it is large, encoded, or of unknown length. */
export function isCostly({ headers }: Pick<Incoming, 'headers'>): boolean {
  const length = headers['content-length'];
  if (length === undefined) return headers['transfer-encoding'] !== undefined;
  return Number(length) > smallBytes || headers['content-encoding'] !== undefined;
}

/** Whether all of a body has come although Node has not noted its end: it does so after the first turn of microtasks behind the bytes. */
function isHere({ headers, readableLength }: Incoming): boolean {
  return readableLength > 0 && String(readableLength) === headers['content-length'];
}

/** Reads bodies and keeps count of the bytes they hold until `release`. */
export class BodyReader {
  #limits: BodyLimits;
  readonly #budget: BodyBudget;
  readonly #turns: FairTurns;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
    this.#budget = new BodyBudget(limits);
    this.#turns = new FairTurns(turnLimits(limits));
  }

  /** Limits for bodies from now on. */
  applyConfig(limits: BodyLimits): void {
    this.#limits = limits;
    this.#budget.applyConfig(limits);
    this.#turns.applyConfig(turnLimits(limits));
  }

  /** Bytes of all bodies in memory. */
  get heldBytes(): number {
    return this.#budget.heldBytes;
  }

  /** Bodies that are being decoded. */
  get decoding(): number {
    return this.#turns.running;
  }

  /**
   * Fills `exchange.request.body`; undefined: at once. Throws or rejects with too_large, overloaded, rate_limited (the account's
   * share), unsupported (encoding), invalid_request (damaged) or client_left.
   */
  read(exchange: LiveExchange): undefined | Promise<void> {
    const { incoming, request } = exchange;
    const encoding = this.#checkHead(incoming);
    const account = exchange.find(bodyOwner);
    const isSmall = !isCostly(incoming);
    if (account !== undefined) exchange.share = this.#budget.shareOf(account);
    else if (!isSmall) exchange.share = this.#budget.shareOf(request.remoteAddress);
    if (isSmall && !incoming.destroyed && (incoming.complete || isHere(incoming))) {
      this.#takeArrived(exchange);
      return undefined;
    }
    // A client that waits for it sends no body before `admit` has accepted the request's head.
    if (incoming.headers.expect !== undefined) exchange.outgoing.writeContinue();
    return new Promise((resolve, reject) => {
      this.#collect(exchange, (chunks) => resolve(this.#take(exchange, chunks, encoding)), reject);
    });
  }

  /** A small body that came with its head, and is not encoded, needs neither events nor promises. */
  #takeArrived(exchange: LiveExchange): void {
    const { incoming, request } = exchange;
    const bytes = incoming.readableLength;
    this.#budget.take(exchange, bytes);
    request.bodyBytes = bytes;
    const first = incoming.read() as Buffer | null;
    if (first === null) request.body = emptyBody;
    else if (first.length === bytes) request.body = first;
    else {
      // After several packets one `read` returns only one chunk.
      const chunks = [first];
      for (let chunk = incoming.read(); chunk !== null; chunk = incoming.read()) chunks.push(chunk as Buffer);
      request.body = joined(chunks, bytes);
    }
    // Its end is read when it comes.
    if (!incoming.complete) incoming.resume();
  }

  /** Sets the request's body. A small one that is not encoded needs no promise. */
  #take(exchange: LiveExchange, chunks: readonly Buffer[], encoding: Encoding | 'identity'): undefined | Promise<void> {
    const { request, heldBytes: bytes } = exchange;
    request.bodyBytes = bytes;
    if (encoding !== 'identity' || bytes > smallBytes) return this.#takeLarge(exchange, chunks, encoding);
    request.body = joined(chunks, bytes);
    return undefined;
  }

  async #takeLarge(exchange: LiveExchange, chunks: readonly Buffer[], encoding: Encoding | 'identity'): Promise<void> {
    const { request, heldBytes: bytes } = exchange;
    if (encoding === 'identity') request.body = await joinedInTurns(chunks, bytes);
    else {
      const owner = exchange.find(bodyOwner) ?? request.remoteAddress;
      request.body = await this.#decodeInTurn(exchange, owner, chunks, encoding);
      this.#budget.release(exchange, bytes);
    }
    if (request.body.length > slicedAboveBytes && exchange.endpoint.body === 'json')
      await parseAhead(request.body, this.#limits.maxValues, () => nextTurnOf(exchange));
  }

  /** The body's encoding. Throws for an unknown one, and for a length beyond the limit. */
  #checkHead({ headers }: Pick<Incoming, 'headers'>): Encoding | 'identity' {
    if (Number(headers['content-length'] ?? 0) > this.#limits.maxBytes) throw this.#tooLarge();
    const header = headers['content-encoding'];
    const encoding = header === undefined ? 'identity' : encodingOf(header);
    if (encoding !== undefined) return encoding;
    throw new GatewayError(
      'unsupported',
      'The content-encoding of this request is not known; send gzip, deflate, br, zstd or none.',
      { field: 'content-encoding' },
    );
  }

  release(exchange: LiveExchange): void {
    if (exchange.heldBytes > 0) this.#budget.release(exchange, exchange.heldBytes);
  }

  async #decodeInTurn(
    exchange: LiveExchange,
    owner: string,
    chunks: readonly Buffer[],
    encoding: Encoding,
  ): Promise<Buffer> {
    if (!(await this.#turns.acquire(owner))) {
      throw new GatewayError('rate_limited', 'Too many compressed requests of this account wait to be unpacked.', {
        code: 'compressed_requests',
        retryAfterMs: 1_000,
      });
    }
    try {
      return await this.#decode(exchange, chunks, encoding);
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      throw new GatewayError('invalid_request', `The request body is not valid ${encoding}.`, {
        field: 'content-encoding',
        cause: error,
      });
    } finally {
      this.#turns.release();
    }
  }

  /** Takes each decoded chunk from the budget as it appears, so that decoding stops at the limit. */
  async #decode(exchange: LiveExchange, chunks: readonly Buffer[], encoding: Encoding): Promise<Buffer> {
    const encodedBytes = exchange.heldBytes;
    const ratioLimit = maxDecodedBytes(encodedBytes);
    let bytes = 0;
    const decoded = await decodeChunks(chunks, encoding, (length) => {
      if (exchange.aborted !== undefined) throw exchange.aborted;
      bytes += length;
      if (bytes > this.#limits.maxBytes) throw this.#tooLarge();
      if (bytes > ratioLimit) throw ratioTooHigh();
      this.#budget.take(exchange, length);
    });
    return joinedInTurns(decoded, bytes);
  }

  #collect(exchange: LiveExchange, resolve: (chunks: Buffer[]) => void, reject: (error: GatewayError) => void): void {
    const { incoming } = exchange;
    // A client that disconnected before, during the look-up of its key, causes no event any more.
    if (exchange.aborted !== undefined || incoming.destroyed) {
      reject(clientDisconnected());
      return;
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      try {
        if (bytes > this.#limits.maxBytes) throw this.#tooLarge();
        this.#budget.take(exchange, chunk.length);
        chunks.push(chunk);
      } catch (error) {
        incoming.removeAllListeners('data');
        incoming.resume();
        reject(error as GatewayError);
      }
    };
    const refuse = () => reject(clientDisconnected());
    const end = () => {
      // They would keep what was read as long as the answer takes.
      incoming.off('data', take).off('end', end).off('close', refuse).off('error', refuse);
      resolve(chunks);
    };
    incoming.on('data', take).on('end', end).on('close', refuse).on('error', refuse);
  }

  #tooLarge(): GatewayError {
    return new GatewayError('too_large', `The request body is larger than ${this.#limits.maxBytes} bytes.`, {
      shouldRetry: false,
    });
  }
}

/** The body as it arrives, for endpoints that read it themselves. */
export async function* streamBody({ incoming, request, outgoing }: LiveExchange): AsyncGenerator<Uint8Array, void> {
  if (encodingOf(incoming.headers['content-encoding']) !== 'identity')
    throw new GatewayError('unsupported', 'Files are sent without a content-encoding.', { field: 'content-encoding' });
  if (incoming.headers.expect !== undefined) outgoing.writeContinue();
  try {
    // Leaving the loop must not close the connection: an answer follows.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
      request.bodyBytes += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  } catch (cause) {
    throw cause instanceof GatewayError ? cause : clientDisconnected();
  } finally {
    if (!incoming.destroyed) incoming.resume();
  }
  if (!incoming.readableEnded) throw clientDisconnected();
}

function turnLimits({ maxDecoding }: BodyLimits): { running: number; waiting: number } {
  return { running: maxDecoding, waiting: maxWaiting };
}

async function nextTurnOf(exchange: LiveExchange): Promise<void> {
  await nextTurn();
  if (exchange.aborted !== undefined) throw exchange.aborted;
}

function joined(chunks: readonly Buffer[], bytes: number): Buffer {
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes);
}

/** Most bytes that are copied in one turn of the event loop. */
const copiedAtOnce = 2 * 2 ** 20;

/** As `joined`, yielding to the event loop while a large body is copied. */
async function joinedInTurns(chunks: readonly Buffer[], bytes: number): Promise<Buffer> {
  if (bytes <= copiedAtOnce || chunks.length === 1) return joined(chunks, bytes);
  const whole = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  let copied = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
    copied += chunk.length;
    if (copied < copiedAtOnce) continue;
    copied = 0;
    await nextTurn();
  }
  return whole;
}

function ratioTooHigh(): GatewayError {
  return new GatewayError('too_large', `The request body unpacks to more than ${maxRatio} times its size.`, {
    field: 'content-encoding',
    shouldRetry: false,
  });
}

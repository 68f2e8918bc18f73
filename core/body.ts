/** Reads a request's body: whole, within its limit, within what all bodies together may take. */
import type { IncomingMessage } from 'node:http';
import { decodeWhole, encodingOf } from './decoding.ts';
import { GatewayError } from './errors.ts';
import { clientLeft, type LiveExchange } from './exchange.ts';

export interface BodyLimits {
  /** One body, encoded or decoded. */
  readonly maxBytes: number;
  /** All bodies that are held at one time. */
  readonly maxBytesInFlight: number;
}

/** Reads bodies and keeps count of the bytes they hold until `release`. */
export class BodyReader {
  #limits: BodyLimits;
  #inFlight = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Other limits for bodies that come from now on. */
  follow(limits: BodyLimits): void {
    this.#limits = limits;
  }

  /** Fills `exchange.request.body`. Throws too_large, overloaded, unsupported (encoding), invalid_request (damaged) or client_left. */
  async read(exchange: LiveExchange): Promise<void> {
    const { incoming } = exchange;
    const declared = Number(incoming.headers['content-length'] ?? 0);
    if (declared > this.#limits.maxBytes) throw this.#tooLarge();
    const encoding = encodingOf(incoming.headers['content-encoding']);
    if (encoding === undefined) {
      throw new GatewayError(
        'unsupported',
        'The content-encoding of this request is not known; send gzip, deflate, br, zstd or none.',
        {
          field: 'content-encoding',
        },
      );
    }
    const body = await this.#collect(exchange, incoming);
    exchange.request.bodyBytes = body.length;
    if (encoding === 'identity') {
      exchange.request.body = body;
      return;
    }
    try {
      exchange.request.body = await decodeWhole(body, encoding, this.#limits.maxBytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw this.#tooLarge();
      throw new GatewayError('invalid_request', `The request body is not valid ${encoding}.`, {
        field: 'content-encoding',
        cause: error,
      });
    }
    this.#take(exchange, exchange.request.body.length);
  }

  release(exchange: LiveExchange): void {
    this.#inFlight -= exchange.heldBytes;
    exchange.heldBytes = 0;
  }

  #take(exchange: LiveExchange, bytes: number): void {
    if (this.#inFlight + bytes > this.#limits.maxBytesInFlight) {
      throw new GatewayError('overloaded', 'The gateway holds too many large requests at the moment.', {
        retryAfterMs: 1_000,
      });
    }
    this.#inFlight += bytes;
    exchange.heldBytes += bytes;
  }

  #collect(exchange: LiveExchange, incoming: IncomingMessage): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      // It may have left while its key was being looked up: then no event will ever come.
      if (exchange.aborted !== undefined || incoming.destroyed) return reject(clientLeft());
      const chunks: Buffer[] = [];
      let bytes = 0;
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        try {
          if (bytes > this.#limits.maxBytes) throw this.#tooLarge();
          this.#take(exchange, chunk.length);
          chunks.push(chunk);
        } catch (error) {
          incoming.removeAllListeners('data');
          incoming.resume();
          reject(error as GatewayError);
        }
      });
      incoming.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes)));
      incoming.on('error', () => reject(clientLeft()));
      incoming.on('close', () => {
        if (!incoming.readableEnded) reject(clientLeft());
      });
    });
  }

  #tooLarge(): GatewayError {
    return new GatewayError('too_large', `The request body is larger than ${this.#limits.maxBytes} bytes.`, {
      shouldRetry: false,
    });
  }
}

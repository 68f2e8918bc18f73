/** Requests to a vendor's batch API: JSON, streamed bodies, and result files that are read line by line. */
import { Agent, type Dispatcher, request } from 'undici';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Headers } from '../../../core/contract/message.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { isObject, type JsonObject, tryParseBytes } from '../../../core/json/json.ts';
import { Agents, connectorFor } from '../../../core/tools/network.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { retryAfterMs } from '../../common/kit/retry-after.ts';
import { addressBelow, baseUrlOf } from '../../common/kit/upstream-request.ts';
import { authorized } from '../../common/wire/credentials.ts';
import { linesOf } from '../input.ts';

interface WireRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base URL, or a whole address, which must be at the base URL's own origin. */
  readonly path: string;
  readonly json?: JsonObject;
  /** Instead of `json`. */
  readonly stream?: { readonly type: string; readonly body: AsyncIterable<Uint8Array> };
  readonly headers?: Headers;
}

interface WireAnswer {
  readonly headers: Headers;
  readonly json: JsonObject;
}

/** The calls of one vendor with one key. */
export interface Wire {
  readonly baseUrl: string;
  /** Throws a VendorRefusal for an error answer, and an UpstreamError where there is none. */
  call(request: WireRequest): Promise<WireAnswer>;
  /** The JSON objects of an answer of lines, as they come; a line that is none is left out. */
  lines(request: WireRequest): AsyncIterable<JsonObject>;
}

/** An error answer of a vendor. */
export class VendorRefusal extends Error {
  readonly status: number;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, text: string, waitMs: number | undefined) {
    super(`the vendor answered ${status}: ${text}`);
    this.status = status;
    this.retryAfterMs = waitMs;
  }

  /** Nothing was done, and the same may be accepted later. */
  get isBusy(): boolean {
    return this.status === 429 || this.status === 503 || this.status === 529;
  }

  /** Nothing was done, and the same will not be accepted. */
  get isFinal(): boolean {
    return this.status >= 400 && this.status < 500 && !this.isBusy && this.status !== 408;
  }
}

export interface WireTarget extends Pick<Target, 'baseUrl' | 'model' | 'key' | 'credential' | 'network' | 'upstream'> {
  readonly auth: NonNullable<Target['upstream']['auth']>;
  readonly headers: Headers;
}

const mostAnswerBytes = 16 * 2 ** 20;
const mostErrorText = 300;

/** A call that has ended; `status` undefined: without an answer. */
export interface WireCall {
  /** Few values: the method, and the address without ids. */
  readonly operation: string;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly status: number | undefined;
}

interface WireOptions {
  /** Ends its calls. */
  readonly signal?: AbortSignal;
  readonly onCall?: ((call: WireCall) => void) | undefined;
}

export class Wires {
  readonly #agents = new Agents();
  readonly #lineBytes: number;
  readonly #clock: Clock;

  /** `lineBytes`: the longest line of results that is read. */
  constructor(lineBytes: number, clock: Clock) {
    this.#lineBytes = lineBytes;
    this.#clock = clock;
  }

  to(target: WireTarget, options: WireOptions = {}): Wire {
    return {
      baseUrl: baseUrlOf(target),
      call: async (wanted) => {
        const answer = await this.#send(target, wanted, options);
        const json = tryParseBytes(await wholeOf(answer));
        return { headers: plain(answer.headers), json: isObject(json) ? json : {} };
      },
      lines: (wanted) => this.#lines(target, wanted, options),
    };
  }

  async close(): Promise<void> {
    await this.#agents.destroy();
  }

  async *#lines(target: WireTarget, wanted: WireRequest, options: WireOptions): AsyncGenerator<JsonObject> {
    const { body } = await this.#send(target, wanted, options);
    try {
      for await (const { bytes } of linesOf(body as AsyncIterable<Uint8Array>, this.#lineBytes)) {
        const json = bytes === 'too long' ? undefined : tryParseBytes(bytes);
        if (isObject(json)) yield json;
      }
    } catch (error) {
      throw new UpstreamError('body', 'the results broke off', { cause: error });
    } finally {
      body.destroy();
    }
  }

  async #send(
    target: WireTarget,
    wanted: WireRequest,
    { signal, onCall }: WireOptions,
  ): Promise<Dispatcher.ResponseData> {
    if (onCall === undefined) return this.#ask(target, wanted, signal);
    const [startedAt, began] = [this.#clock.now(), this.#clock.monotonic()];
    const ended = (status: number | undefined) => {
      // States are asked for many times a minute.
      if (wanted.method === 'GET' && status === 200 && !isResult(wanted)) return;
      const durationMs = this.#clock.monotonic() - began;
      onCall({ operation: operationOf(wanted), startedAt, durationMs, status });
    };
    try {
      const answer = await this.#ask(target, wanted, signal);
      ended(answer.statusCode);
      return answer;
    } catch (error) {
      ended(error instanceof VendorRefusal ? error.status : undefined);
      throw error;
    }
  }

  async #ask(target: WireTarget, wanted: WireRequest, signal?: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { upstream } = target;
    const { method, json, stream } = wanted;
    const body = json === undefined ? undefined : JSON.stringify(json);
    const type = stream?.type ?? (body === undefined ? undefined : 'application/json');
    const headers: Headers = { accept: 'application/json', 'accept-encoding': 'identity', ...target.headers };
    if (type !== undefined) headers['content-type'] = type;
    const plainRequest = {
      url: addressOf(target, wanted.path),
      method,
      headers: { ...headers, ...wanted.headers },
      body,
    };
    const final = await authorized(plainRequest, target.auth, target);
    const answer = await request(final.url, {
      dispatcher: this.#agentFor(target),
      method,
      headers: final.headers,
      body: (stream?.body as AsyncIterable<Uint8Array> & Dispatcher.DispatchOptions['body']) ?? body ?? null,
      headersTimeout: upstream.firstByteTimeoutMs,
      bodyTimeout: upstream.idleTimeoutMs,
      ...(signal === undefined ? {} : { signal }),
    }).catch((error: unknown) => {
      throw failed(error);
    });
    answer.body.on('error', () => {});
    if (answer.statusCode < 300) return answer;
    const text = (await wholeOf(answer)).toString('utf8').slice(0, mostErrorText);
    throw new VendorRefusal(answer.statusCode, text, retryAfterMs(plain(answer.headers), undefined, this.#clock.now()));
  }

  #agentFor({ upstream: { connectTimeoutMs }, network, credential }: WireTarget): Agent {
    return this.#agents.get(
      `${connectTimeoutMs} ${credential} ${network?.name ?? ''}`,
      () => new Agent({ pipelining: 0, connect: connectorFor(connectTimeoutMs, network) }),
    );
  }
}

/** The results of a batch, rather than its state. */
const isResult = ({ path }: WireRequest) => !path.startsWith('/') || /\/(?:content|results)$|:download/.test(path);

function operationOf({ method, path }: WireRequest): string {
  if (!path.startsWith('/')) return `${method} results`;
  const segments = path.split('?', 1)[0]!.split('/');
  return `${method} ${segments.map((segment) => (/\d/.test(segment) ? '{id}' : segment)).join('/')}`;
}

/** A vendor names some addresses itself: the key goes to its own origin alone. */
function addressOf(target: WireTarget, path: string): string {
  const base = baseUrlOf(target);
  if (path.startsWith('/')) return addressBelow(base, path);
  if (URL.parse(path)?.origin !== new URL(base).origin)
    throw new UpstreamError('connect', 'the vendor named an address at another origin');
  return path;
}

async function wholeOf({ body }: Dispatcher.ResponseData): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > mostAnswerBytes) throw new UpstreamError('body', 'the answer is too large');
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof UpstreamError ? error : new UpstreamError('body', 'the answer broke off', { cause: error });
  }
  return Buffer.concat(chunks);
}

function failed(error: unknown): Error {
  if (error instanceof UpstreamError || !(error instanceof Error)) return error as Error;
  const unsent = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'];
  const isUnsent = unsent.includes((error as NodeJS.ErrnoException).code ?? '');
  return new UpstreamError(isUnsent ? 'connect' : 'sent', 'the vendor gave no answer', { cause: error });
}

function plain(headers: Dispatcher.ResponseData['headers']): Headers {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === 'string' ? value : value.join(', ')]],
    ),
  );
}

/** An answer that does not tell what it must: whether anything was done is not known. */
export function badAnswer(what: string): UpstreamError {
  return new UpstreamError('body', `the vendor's answer cannot be read: ${what}`);
}

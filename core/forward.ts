/** The centre of the onion: http-proxy-3 behind one promise, on an undici transport. Its only importer. */
import type { IncomingMessage } from 'node:http';
import { createProxyServer, type ServerOptions } from 'http-proxy-3';
import { type Answer, type UpstreamRequest, upstreamRequest } from './contract.ts';
import { decodeStream, decodeWhole, encodingOf } from './decoding.ts';
import { UpstreamError } from './errors.ts';
import type { LiveExchange } from './exchange.ts';
import { Pools, type UpstreamAnswer, UpstreamAttempt } from './transport.ts';

/** What http-proxy-3 is told after the answer was taken: nothing is left for it to write. */
const emptyAnswer = { status: 200, statusText: '', headers: new Map<string, string>(), body: null };
/**
 * What http-proxy-3 gets to see in place of the client's request: method, path, headers and body are stated by plugins, so
 * copying the client's would be thrown away, and its socket errors are the server's to handle.
 */
const statedElsewhere = {
  method: 'POST',
  url: '/',
  headers: {},
  httpVersionMajor: 1,
  on: () => {},
} as unknown as IncomingMessage;
/** The headers that http-proxy-3 makes of the client's are thrown away: ours replace them as a whole. */
const noHeaders = { requestOptions: { headers: {} } };

const smallBytes = 64 * 1024;

export interface Forward {
  (exchange: LiveExchange): Promise<Answer>;
  close(): Promise<void>;
}

/**
 * Sends what the fact `upstream request` states and answers with what comes back. Rejects with an UpstreamError whose
 * phase tells whether the upstream may have executed the request. `maxAnswerBytes` bounds answers that are read whole.
 */
export function createForward(maxAnswerBytes: number): Forward {
  const proxy = createProxyServer({ selfHandleResponse: true, ignorePath: true, prependPath: false });
  const pools = new Pools();

  async function forward(exchange: LiveExchange): Promise<Answer> {
    const sending = exchange.get(upstreamRequest);
    if (exchange.left !== undefined) throw exchange.left;
    const ready = exchange.readyToSend();
    if (ready !== undefined) await ready;
    const stopped = exchange.aborted ?? exchange.left;
    // Nothing has left, and nobody must pay as if it had.
    if (stopped !== undefined) throw new UpstreamError('connect', stopped.message, { cause: stopped });
    exchange.hasSent = true;
    // Whatever an earlier attempt told of itself reached nobody.
    exchange.failure = undefined;
    const attempt = new UpstreamAttempt();
    exchange.onAbort((reason) => attempt.abort(reason));
    const url = parsed(sending.url);
    proxy.web(statedElsewhere, exchange.outgoing, {
      target: url,
      buffer: sending.body as unknown as NonNullable<ServerOptions['buffer']>,
      fetchOptions: noHeaders,
      fetch: (async () => {
        dispatch(pools, url, sending, attempt);
        return emptyAnswer;
      }) as unknown as typeof fetch,
    });
    const answer = await answerOf(attempt, exchange);
    return sending.stream && answer.status < 300 && !isSmall(answer)
      ? streamed(answer)
      : wholly(answer, maxAnswerBytes);
  }

  return Object.assign(forward, { close: () => pools.close() });
}

const parsedUrls = new Map<string, URL>();
const maxParsedUrls = 1_000;

/** The same few addresses come with every request. */
function parsed(address: string): URL {
  let url = parsedUrls.get(address);
  if (url === undefined) {
    if (parsedUrls.size >= maxParsedUrls) parsedUrls.clear();
    url = new URL(address);
    parsedUrls.set(address, url);
  }
  return url;
}

function dispatch(pools: Pools, url: URL, sending: UpstreamRequest, attempt: UpstreamAttempt): void {
  const pool = pools.for(url.origin, sending.credential, sending.connectTimeoutMs);
  pool.dispatch(
    {
      path: url.pathname + url.search,
      method: sending.method as 'POST',
      headers: sending.headers,
      body: sending.body ?? null,
      headersTimeout: sending.firstByteTimeoutMs,
      bodyTimeout: sending.idleTimeoutMs,
    },
    attempt,
  );
}

/** The attempt's head. One that failed no longer listens to the exchange's abort: the next attempt will. */
async function answerOf(attempt: UpstreamAttempt, exchange: LiveExchange): Promise<UpstreamAnswer> {
  try {
    const answer = await attempt.answer;
    exchange.headStatus = answer.status;
    return answer;
  } catch (error) {
    exchange.onAbort(undefined);
    throw error;
  }
}

/** A body whose short length is known costs less as one buffer than as a stream, and nobody waits for its parts. */
function isSmall({ headers }: UpstreamAnswer): boolean {
  const length = headers['content-length'];
  return length !== undefined && Number(length) <= smallBytes;
}

function streamed(answer: UpstreamAnswer): Answer {
  const encoding = encodingOf(answer.headers['content-encoding']);
  if (encoding === 'identity') return answer;
  if (encoding === undefined) {
    void answer.body.return();
    throw new UpstreamError('sent', 'unknown content-encoding');
  }
  return { status: answer.status, headers: withoutEncoding(answer), body: decodeStream(answer.body, encoding) };
}

async function wholly(answer: UpstreamAnswer, maxBytes: number): Promise<Answer> {
  const body = await readAll(answer, maxBytes);
  const encoding = encodingOf(answer.headers['content-encoding']);
  if (encoding === 'identity') return { status: answer.status, headers: answer.headers, body };
  if (encoding === undefined) throw new UpstreamError('sent', 'unknown content-encoding');
  const decoded = await decodeWhole(body, encoding, maxBytes).catch((cause: unknown) => {
    throw new UpstreamError('sent', 'damaged content-encoding', { cause });
  });
  return { status: answer.status, headers: withoutEncoding(answer), body: decoded };
}

async function readAll({ body }: UpstreamAnswer, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (let step = await body.next(); step.done !== true; step = await body.next()) {
    chunks.push(step.value);
    bytes += step.value.length;
    if (bytes > maxBytes) {
      void body.return();
      throw new UpstreamError('sent', 'answer too large');
    }
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes);
}

function withoutEncoding(answer: UpstreamAnswer): Answer['headers'] {
  const { 'content-encoding': _encoding, 'content-length': _length, ...headers } = answer.headers;
  return headers;
}

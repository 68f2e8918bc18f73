/** Sends an adapter's request to its vendor, and tells of a failure whether anything can have been sent. */
import { Agent, type Dispatcher, request } from 'undici';
import type { Headers, Host, Random } from '../../core/contract.ts';
import { UpstreamError } from '../../core/errors.ts';
import { tryParseBytes } from '../../core/json.ts';
import type { Target } from '../../core/vocabulary.ts';
import type { VendorAnswer, VendorRequest } from './contract.ts';
import { writeMultipart } from './multipart.ts';

/** Ten large images as base64. */
const maxAnswerBytes = 256 * 2 ** 20;

/** Failures of the connection itself, by the codes of Node and undici: nothing has been sent. All others may have come later. */
const beforeSending = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

export interface VendorTime {
  /** Until the answer's head. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** An answer whose body is still to come. */
export interface OpenAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Throws UpstreamError. */
  readonly body: AsyncIterable<Buffer>;
  close(): void;
}

export interface Vendors {
  /** Throws UpstreamError: with the phase `connect`, the vendor knows nothing of it. */
  ask(wanted: VendorRequest, target: Target, timeoutMs: number, signal: AbortSignal): Promise<VendorAnswer>;
  /** As `ask`, for answers that are read as they come. Whoever opens one closes it. */
  open(wanted: VendorRequest, target: Target, time: VendorTime): Promise<OpenAnswer>;
  close(): Promise<void>;
}

export function openVendors({ clock, random }: Pick<Host, 'clock' | 'random'>): Vendors {
  const agents = new Map<number, Agent>();
  const agentFor = (connectTimeoutMs: number) => {
    let agent = agents.get(connectTimeoutMs);
    if (agent === undefined) {
      // A connection each: one that was kept may be dead, and then nobody knows whether the request was read. Generation
      // takes seconds, a connection does not; and no credential's socket is ever another's.
      agent = new Agent({ pipelining: 0, connect: { timeout: connectTimeoutMs }, maxHeaderSize: 64 * 1024 });
      agents.set(connectTimeoutMs, agent);
    }
    return agent;
  };
  const open: Vendors['open'] = async (wanted, target, { timeoutMs, signal }) => {
    const { body, type } = contentOf(wanted, random);
    try {
      const answer = await request(target.baseUrl + wanted.path, {
        dispatcher: agentFor(target.upstream.connectTimeoutMs),
        method: wanted.method,
        headers: headersFor(target, type),
        body,
        headersTimeout: timeoutMs,
        bodyTimeout: target.upstream.idleTimeoutMs,
        signal,
      });
      // Whoever closes it early is not told that it broke.
      answer.body.on('error', () => {});
      const close = () => void answer.body.destroy();
      return { status: answer.statusCode, headers: plain(answer.headers), body: chunksOf(answer, signal), close };
    } catch (error) {
      throw told(error, signal);
    }
  };
  return {
    open,
    async ask(wanted, target, timeoutMs, signal) {
      const { status, headers, body } = await open(wanted, target, { timeoutMs, signal });
      return { status, headers, atMs: clock.now(), json: tryParseBytes(await readBody(body)) };
    },
    async close() {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()));
    },
  };
}

async function* chunksOf({ body }: Dispatcher.ResponseData, signal: AbortSignal): AsyncGenerator<Buffer, void> {
  let bytes = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxAnswerBytes) throw new UpstreamError('body', 'the answer is too large');
      yield chunk;
    }
  } catch (error) {
    throw told(error, signal);
  }
}

/** All of it. */
export async function readBody(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function told(error: unknown, signal: AbortSignal): UpstreamError {
  if (error instanceof UpstreamError) return error;
  const { code, name, message } = error as NodeJS.ErrnoException;
  const inner = (error as { errors?: NodeJS.ErrnoException[] }).errors ?? [];
  const codes = inner.length > 0 ? inner.map((each) => each.code) : [code];
  const unsent = codes.every((each) => each !== undefined && beforeSending.has(each));
  const timedOut = signal.aborted || /Timeout/.test(name);
  return new UpstreamError(unsent ? 'connect' : 'sent', message, { timedOut, cause: error });
}

function contentOf({ body, form }: VendorRequest, random: Random): { body: string | Buffer | null; type?: string } {
  if (form !== undefined) {
    const boundary = `form-${random.bytes(16).toString('hex')}`;
    return { body: writeMultipart(form, boundary), type: `multipart/form-data; boundary=${boundary}` };
  }
  return body === undefined ? { body: null } : { body: JSON.stringify(body), type: 'application/json' };
}

function headersFor({ upstream, key }: Target, type: string | undefined): Headers {
  const headers: Headers = { accept: 'application/json', 'accept-encoding': 'identity' };
  if (type !== undefined) headers['content-type'] = type;
  for (const [name, value] of Object.entries(upstream.headers)) headers[name.toLowerCase()] = value;
  const { header, value } = upstream.auth ?? { header: 'authorization', value: 'Bearer {key}' };
  headers[header.toLowerCase()] = value.replace('{key}', () => key.reveal());
  return headers;
}

function plain(headers: Dispatcher.ResponseData['headers']): Headers {
  const joined: Headers = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) joined[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return joined;
}

/** Sends an adapter's request to its vendor, and reports for a failure whether anything can have been sent. */
import { Agent, type Dispatcher, request } from 'undici';
import type { Host } from '../../../core/contract/contract.ts';
import type { Random } from '../../../core/contract/host-tools.ts';
import type { Headers } from '../../../core/contract/message.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { tryParseBytes } from '../../../core/json/json.ts';
import { Agents, connectorFor } from '../../../core/tools/network.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { writeMultipart } from '../../common/kit/forms/multipart.ts';
import { addressBelow, baseUrlOf } from '../../common/kit/upstream-request.ts';
import type { VendorAnswer, VendorRequest } from '../../common/media/adapters.ts';
import { authorized, CredentialError } from '../../common/wire/credentials.ts';

/** Ten large images as base64. */
const maxAnswerBytes = 256 * 2 ** 20;

/** Error codes of Node and undici for failures before anything is sent. All other failures may come later. */
const beforeSending = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'proxy_failed',
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

/** An answer with an unread body. */
export interface OpenAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Throws UpstreamError. */
  readonly body: AsyncIterable<Buffer>;
  close(): void;
}

const usualAuth = { header: 'authorization', value: 'Bearer {key}' };

export interface Vendors {
  /** Throws UpstreamError: with the phase `connect`, the vendor has received nothing. */
  call(wanted: VendorRequest, target: Target, timeoutMs: number, signal: AbortSignal): Promise<VendorAnswer>;
  /** Like `call`, for answers that are read as a stream. The caller must close it. */
  open(wanted: VendorRequest, target: Target, time: VendorTime): Promise<OpenAnswer>;
  close(): Promise<void>;
}

export function openVendors({ clock, random }: Pick<Host, 'clock' | 'random'>): Vendors {
  const agents = new Agents();
  // A new connection per request: on a kept one that has died it is unknown whether the vendor read the request.
  // Its cost is small beside seconds of generation, and no two credentials share a socket.
  const agentFor = ({ upstream: { connectTimeoutMs }, network }: Target) =>
    agents.get(
      `${connectTimeoutMs} ${network?.name ?? ''}`,
      () => new Agent({ pipelining: 0, connect: connectorFor(connectTimeoutMs, network), maxHeaderSize: 64 * 1024 }),
    );
  const open: Vendors['open'] = async (wanted, target, { timeoutMs, signal }) => {
    const { body, type } = contentOf(wanted, random);
    try {
      const { url, headers } = await authorized(
        {
          url: addressBelow(baseUrlOf(target), wanted.path),
          method: wanted.method,
          headers: headersFor(target, type),
          body: body ?? undefined,
        },
        target.upstream.auth ?? usualAuth,
        target,
      );
      const answer = await request(url, {
        dispatcher: agentFor(target),
        method: wanted.method,
        headers,
        body,
        headersTimeout: timeoutMs,
        bodyTimeout: target.upstream.idleTimeoutMs,
        signal,
      });
      // An early close must not raise an unhandled error.
      answer.body.on('error', () => {});
      const close = () => void answer.body.destroy();
      return { status: answer.statusCode, headers: plain(answer.headers), body: chunksOf(answer, signal), close };
    } catch (error) {
      throw toUpstreamError(error, signal);
    }
  };
  return {
    open,
    async call(wanted, target, timeoutMs, signal) {
      const { status, headers, body } = await open(wanted, target, { timeoutMs, signal });
      const bytes = await readBody(body);
      return { status, headers, atMs: clock.now(), json: tryParseBytes(bytes), ...(status < 300 ? {} : { bytes }) };
    },
    async close() {
      await agents.destroy();
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
    throw toUpstreamError(error, signal);
  }
}

/** Reads the whole body. */
export async function readBody(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function toUpstreamError(error: unknown, signal: AbortSignal): UpstreamError {
  if (error instanceof CredentialError) return error;
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

function headersFor({ upstream, headers: own = {} }: Target, type: string | undefined): Headers {
  const headers: Headers = { accept: 'application/json', 'accept-encoding': 'identity' };
  if (type !== undefined) headers['content-type'] = type;
  for (const [name, value] of Object.entries(upstream.headers)) headers[name.toLowerCase()] = value;
  return Object.assign(headers, own);
}

function plain(headers: Dispatcher.ResponseData['headers']): Headers {
  const joined: Headers = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) joined[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return joined;
}

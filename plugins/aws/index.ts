/** The credential scheme of AWS: signature version 4 over the final bytes of a request, with keys written or found by the official chain. */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { Readable } from 'node:stream';
import type { HttpRequest } from '@smithy/core/protocols';
import { SignatureV4 } from '@smithy/signature-v4';
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import type { Secret } from '../../core/contract/secret.ts';
import type { FinalRequest } from '../common/domain/upstreams.ts';
import { type ComputedScheme, Refreshed, vendorCredentials } from '../common/wire/credentials.ts';

const name = z.string().regex(/^[a-z0-9-]{1,64}$/, 'must be lower-case letters, digits and dashes');

const settings = z.strictObject({
  service: name.describe(
    'The service that requests are signed for, by its signing name. Write the name that the service documents.',
  ),
  region: name
    .optional()
    .describe(
      'The region that requests are signed for. Set it where the host is a private name. Default: the one in the name of the host.',
    ),
});

const mostBytes = 64 * 1024;

interface Identity {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

type Tools = Parameters<ComputedScheme<unknown>['open']>[2];

const scheme: ComputedScheme<z.output<typeof settings>> = {
  name: 'aws',
  config: settings,
  needsNoKey: true,
  open({ service, region }, key, tools) {
    const { clock } = tools;
    const identities = key.reveal() === '' ? found(tools) : { get: () => written(key) };
    return {
      async authorize(request) {
        const url = new URL(request.url);
        const signer = new SignatureV4({
          service,
          region: region ?? regionIn(url.hostname),
          credentials: await identities.get(),
          sha256: Sha256,
        });
        const signed = await signer.sign(signable(request, url), { signingDate: new Date(clock.now()) });
        const { host: _host, 'content-type': _type, ...added } = signed.headers;
        return added;
      },
    };
  },
};

/** Two parts, or three with the token of a session. */
function written(key: Secret): Identity {
  const match = /^(\w{4,128}):([A-Za-z0-9/+=]{1,256})(?::([\x21-\x7e]+))?$/.exec(key.reveal());
  if (match === null) throw new Error('its key is not ACCESS_KEY_ID:SECRET_ACCESS_KEY or …:SESSION_TOKEN');
  const [, accessKeyId, secretAccessKey, sessionToken] = match as unknown as [string, string, string, string?];
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

/** Environment, profiles, web identity, container and instance roles, in the official order. */
function found({ clock, fetch }: Tools): Refreshed<Identity> {
  let provider: (() => Promise<Identity & { readonly expiration?: Date }>) | undefined;
  return new Refreshed({
    clock,
    async load() {
      provider ??= (await import('@aws-sdk/credential-provider-node')).defaultProvider({
        clientConfig: { requestHandler: handlerBy(fetch) },
      });
      const identity = await provider();
      return { value: identity, endsAt: identity.expiration?.getTime() };
    },
  });
}

/** Sends the official chain's requests to token services. Addresses local to the machine are called directly. */
function handlerBy(send: typeof fetch) {
  return {
    async handle(request: HttpRequest, { abortSignal: signal }: { abortSignal?: unknown } = {}) {
      const { protocol, hostname, port, path, query, method, headers, body } = request;
      const search = new URLSearchParams(query as Record<string, string>).toString();
      const address = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}${search === '' ? '' : `?${search}`}`;
      const { host: _host, 'content-length': _length, ...others } = headers;
      const init = { method, headers: others, redirect: 'error' as const };
      const answer = await send(address, {
        ...init,
        ...(method === 'GET' ? {} : { body: body as string }),
        ...(signal instanceof AbortSignal ? { signal } : {}),
      });
      const { HttpResponse } = await import('@smithy/core/protocols');
      const bytes = await boundedBody(answer);
      const answered = { statusCode: answer.status, headers: Object.fromEntries(answer.headers) };
      return { response: new HttpResponse({ ...answered, body: Readable.from([bytes]) }) };
    },
    updateHttpClientConfig() {},
    httpHandlerConfigs: () => ({}),
  };
}

async function boundedBody(answer: Response): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of answer.body ?? []) {
    bytes += part.length;
    if (bytes > mostBytes) throw new Error('the token service sent too long an answer');
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function regionIn(host: string): string {
  const region = /\.([a-z]{2,4}(?:-[a-z]+)+-\d)\./.exec(host)?.[1];
  if (region === undefined) throw new Error('the address names no region: write auth.region');
  return region;
}

/** The type and the host are signed beside what the signature adds; the other headers may be changed on the way. */
function signable({ method, headers, body }: FinalRequest, url: URL) {
  const digest = createHash('sha256');
  for (const part of Array.isArray(body) ? (body as readonly Uint8Array[]) : [(body ?? '') as Uint8Array | string])
    digest.update(part);
  const query: Record<string, string[]> = {};
  for (const member of new Set(url.searchParams.keys())) query[member] = url.searchParams.getAll(member);
  const type = headers['content-type'];
  return {
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    query,
    headers: {
      host: url.host,
      ...(type === undefined ? {} : { 'content-type': type }),
      'x-amz-content-sha256': digest.digest('hex'),
    },
  };
}

/** The digest in the form that the signer takes. */
class Sha256 {
  readonly #digest: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#digest = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#digest.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#digest.digest();
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof data === 'string') return Buffer.from(data);
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

export default definePlugin({
  name: 'aws',
  config: z.strictObject({}),
  extends: [vendorCredentials],
  setup(host) {
    host.extend(vendorCredentials, scheme);
    return {};
  },
});

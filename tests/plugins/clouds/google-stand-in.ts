/** A project of Google Cloud with models of two publishers, and all that gives out tokens for it: each checks what it is sent. */
import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Arrived, Play } from '../../matrix/scenario.ts';
import { geminiVendor } from '../../matrix/vendors/gemini.ts';
import { messagesVendor } from '../../matrix/vendors/messages.ts';

export const project = 'projects/project-1/locations/europe-west1';
export const refreshToken = 'refresh-token-of-the-user';
export const subjectToken = 'subject.token.of-the-workload';
const scope = 'https://www.googleapis.com/auth/cloud-platform';
const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
/** Tokens for it are good for no model. */
const audienceOfImpersonation = '//iam.example/pool-of-impersonation';
const email = 'gateway@project-1.iam.example';

interface Answer {
  readonly status: number;
  readonly type?: string;
  readonly body: string;
}

export interface GoogleStandIn {
  readonly origin: string;
  /** Base URL of the project's models. */
  readonly base: string;
  /** What was asked of the models, in the order of arrival. */
  readonly arrived: Arrived[];
  /** Path and body of each of these requests. */
  readonly requests: { readonly path: string; readonly body: string }[];
  readonly problems: unknown[];
  play: Play;
  /** Instead of an answer of a model. */
  fault: { status: number; body: object } | undefined;
  readonly tokens: { issued: string[]; refuses: boolean; livesSeconds: number; revoked: boolean };
  /** Contents of credential files. */
  serviceAccount(): Record<string, string>;
  user(): Record<string, string>;
  federated(file: string, impersonates: boolean): Record<string, unknown>;
  close(): void;
}

export async function startGoogle(play: Play): Promise<GoogleStandIn> {
  const federatedTokens = new Set<string>();
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    let answer: Answer;
    try {
      answer = request.url!.startsWith('/v1/projects/') ? model(request, body) : token(request, body);
    } catch (problem) {
      standIn.problems.push(problem);
      answer = refusal(400, 'INVALID_ARGUMENT', String(problem));
    }
    response.writeHead(answer.status, { 'content-type': answer.type ?? 'application/json' }).end(answer.body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const standIn: GoogleStandIn = {
    origin,
    base: `${origin}/v1/${project}`,
    ...{ arrived: [], requests: [], problems: [], play, fault: undefined },
    tokens: { issued: [], refuses: false, livesSeconds: 3_599, revoked: false },
    serviceAccount: () => ({
      ...{ type: 'service_account', project_id: 'project-1', private_key_id: 'key-1', private_key: privateKey },
      ...{ client_email: email, token_uri: `${origin}/token`, universe_domain: 'googleapis.com' },
    }),
    user: () => ({
      ...{ type: 'authorized_user', client_id: 'client-1', client_secret: 'secret-of-the-client' },
      ...{ refresh_token: refreshToken, token_uri: `${origin}/token` },
    }),
    federated: (file, impersonates) => ({
      ...{ type: 'external_account', token_url: `${origin}/sts` },
      audience: impersonates ? audienceOfImpersonation : '//iam.example/pool',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      credential_source: { file, format: { type: 'json', subject_token_field_name: 'access_token' } },
      ...(impersonates ? { service_account_impersonation_url: `${origin}/impersonate` } : {}),
    }),
    close: () => void server.close(),
  };
  return standIn;

  function issue(): string {
    const token = `ya29.token-${standIn.tokens.issued.length + 1}`;
    standIn.tokens.issued.push(token);
    return token;
  }

  function token({ url, method, headers }: IncomingMessage, body: Buffer): Answer {
    const { tokens } = standIn;
    const form = Object.fromEntries(new URLSearchParams(body.toString()));
    const requested = new URL(url!, origin);
    if (requested.pathname === '/impersonate') return impersonate(method, headers, body);
    if (requested.pathname.startsWith('/computeMetadata/')) {
      assert.equal(requested.pathname, '/computeMetadata/v1/instance/service-accounts/default/token');
      assert.deepEqual([method, headers['metadata-flavor']], ['GET', 'Google']);
      assert.deepEqual([...requested.searchParams], [['scopes', scope]]);
    } else {
      assert.equal(method, 'POST');
      assert.match(headers['content-type']!, /^application\/x-www-form-urlencoded/);
      if (requested.pathname === '/sts') checkExchange(form);
      else {
        assert.equal(requested.pathname, '/token');
        checkGrant(form);
      }
    }
    if (tokens.refuses) {
      const quoted = form['assertion'] ?? form['refresh_token'] ?? form['subject_token'];
      const refused = { error: 'invalid_grant', error_description: `Invalid grant: ${quoted}` };
      return { status: 400, body: JSON.stringify(refused) };
    }
    const access = issue();
    if (form['audience'] === audienceOfImpersonation) federatedTokens.add(access);
    const life = { expires_in: tokens.livesSeconds, token_type: 'Bearer' };
    return { status: 200, body: JSON.stringify({ access_token: access, ...life }) };
  }

  function checkGrant({ grant_type: grant, assertion, ...others }: Record<string, string>) {
    if (grant === 'refresh_token') {
      const { client_id, client_secret, refresh_token } = standIn.user();
      assert.deepEqual(others, { client_id, client_secret, refresh_token });
      return;
    }
    assert.equal(grant, 'urn:ietf:params:oauth:grant-type:jwt-bearer');
    assert.deepEqual(others, {});
    const [header, claims, signature] = assertion!.split('.') as [string, string, string];
    const signed = Buffer.from(`${header}.${claims}`);
    assert.ok(verify('RSA-SHA256', signed, createPublicKey(publicKey), Buffer.from(signature, 'base64url')));
    const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
    assert.deepEqual(read(header), { alg: 'RS256', typ: 'JWT', kid: 'key-1' });
    const { iat, exp, ...said } = read(claims) as { iat: number; exp: number };
    assert.deepEqual(said, { iss: email, scope, aud: `${origin}/token` });
    assert.equal(exp - iat, 3_600);
    assert.ok(Math.abs(Date.now() / 1_000 - iat) < 60);
  }

  function checkExchange({ audience, ...form }: Record<string, string>) {
    assert.ok(audience === audienceOfImpersonation || audience === '//iam.example/pool');
    assert.deepEqual(form, {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      scope,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: subjectToken,
    });
  }

  function impersonate(method: string | undefined, headers: IncomingMessage['headers'], body: Buffer): Answer {
    assert.equal(method, 'POST');
    assert.ok(federatedTokens.delete(headers.authorization!.slice('Bearer '.length)));
    assert.deepEqual(JSON.parse(body.toString()), { scope: [scope], lifetime: '3600s' });
    const expireTime = new Date(Date.now() + 3_600_000).toISOString();
    return { status: 200, body: JSON.stringify({ accessToken: issue(), expireTime }) };
  }

  function model({ url, method, headers }: IncomingMessage, body: Buffer): Answer {
    standIn.requests.push({ path: url!, body: body.toString() });
    const { tokens, fault } = standIn;
    const bearer = headers.authorization?.slice('Bearer '.length) ?? '';
    if (tokens.revoked || !tokens.issued.includes(bearer) || federatedTokens.has(bearer))
      return refusal(401, 'UNAUTHENTICATED', `Request had invalid authentication credentials: ${bearer}.`);
    assert.equal(method, 'POST');
    for (const name of ['x-api-key', 'x-goog-api-key', 'anthropic-version']) assert.equal(headers[name], undefined);
    const found = /^\/publishers\/(google|anthropic)\/models\/([^/:?]+):(\w+)(\?.*)?$/.exec(
      url!.slice(`/v1/${project}`.length),
    );
    assert.ok(found !== null, `the path ${url}`);
    const [, publisher, name, verb, query = ''] = found as unknown as [string, string, string, string, string?];
    const named = decodeURIComponent(name);
    if (named === 'no-such-model')
      return refusal(404, 'NOT_FOUND', `Publisher Model \`${project}/publishers/x/models/y\` was not found.`);
    if (fault !== undefined) return { status: fault.status, body: JSON.stringify(fault.body) };
    return publisher === 'google' ? gemini(named, verb, query, body) : claude(named, verb, query, body);
  }

  function gemini(name: string, verb: string, query: string, body: Buffer): Answer {
    assert.equal(name, 'their-gemini');
    if (verb === 'countTokens') {
      assert.equal(query, '');
      const members = ['contents', 'systemInstruction', 'tools', 'generationConfig'];
      for (const member of Object.keys(JSON.parse(body.toString()) as object))
        assert.ok(members.includes(member), member);
      return { status: 200, body: JSON.stringify({ totalTokens: 77 }) };
    }
    const isStream = verb === 'streamGenerateContent';
    assert.equal(verb + query, isStream ? 'streamGenerateContent?alt=sse' : 'generateContent');
    read(geminiVendor, {
      url: `/v1beta/models/${name}:${verb}${query}`,
      headers: { 'x-goog-api-key': 'vendor-key' },
      body,
    });
    return answered(geminiVendor, name, isStream);
  }

  function claude(name: string, verb: string, query: string, body: Buffer): Answer {
    assert.equal(query, '');
    const { anthropic_version: version, ...others } = JSON.parse(body.toString()) as Record<string, unknown>;
    if (name === 'count-tokens') {
      assert.equal(verb, 'rawPredict');
      assert.equal(others['model'], 'their-claude@20260101');
      return { status: 200, body: JSON.stringify({ input_tokens: 88 }) };
    }
    assert.equal(name, 'their-claude@20260101');
    assert.equal(version, 'vertex-2023-10-16');
    assert.equal('model' in others, false);
    const isStream = others['stream'] === true;
    assert.equal(verb, isStream ? 'streamRawPredict' : 'rawPredict');
    const messages = joined(others['messages'] as Message[]);
    const plain = Buffer.from(JSON.stringify({ model: name, ...others, messages }));
    const headers = { 'x-api-key': 'vendor-key', 'anthropic-version': '2023-06-01' };
    read(messagesVendor, { url: '/v1/messages', headers, body: plain });
    return answered(messagesVendor, name, isStream);
  }

  function read(vendor: typeof geminiVendor, received: { url: string; headers: object; body: Buffer }) {
    standIn.arrived.push(vendor.read(received as unknown as Parameters<typeof vendor.read>[0]));
  }

  function answered(vendor: typeof geminiVendor, name: string, isStream: boolean): Answer {
    if (!isStream) return { status: 200, body: vendor.whole(standIn.play, name) };
    return { status: 200, type: 'text/event-stream', body: vendor.stream(standIn.play, name).join('') };
  }
}

export interface Message {
  readonly role: string;
  readonly content: string | readonly object[];
}

/** The vendor takes turns of one side in a row as one; the words that read this do not. */
export function joined(messages: readonly Message[]): Message[] {
  const all: Message[] = [];
  for (const message of messages) {
    const last = all.at(-1);
    if (last?.role !== message.role) all.push(message);
    else all.splice(-1, 1, { role: last.role, content: [...blocksOf(last), ...blocksOf(message)] });
  }
  return all;
}

function blocksOf({ content }: Message): readonly object[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

function refusal(status: number, word: string, message: string): Answer {
  return { status, body: JSON.stringify({ error: { code: status, message, status: word } }) };
}

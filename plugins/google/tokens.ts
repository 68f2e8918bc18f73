/** Fetches access tokens: one request for each kind of credential, so the vendor's library with its own HTTP client is not used. */
import { createPrivateKey, sign } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../../core/contract/host-tools.ts';
import { z } from '../../core/contract/schema.ts';
import type { Secret } from '../../core/contract/secret.ts';
import { isObject, type JsonObject, objectOf, textOf, tryParse } from '../../core/json/json.ts';
import { boundedText } from '../common/kit/fetch/bounded-text.ts';
import type { Perishable } from '../common/wire/credentials.ts';

export interface TokenSource {
  /** The credential file, or its path; empty: there is none. */
  readonly key: Secret;
  readonly scope: string;
  readonly metadata: string;
  readonly clock: Clock;
  /** Calls the token servers. Addresses local to the machine, such as its metadata server, are called directly. */
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
}

type Token = Perishable<string>;

const mostBytes = 64 * 1024;
const hourSeconds = 3_600;
const url = z.url({ protocol: /^https?$/ });
const text = z.string().min(1);

/** The kinds of credential files, as `type` names them. Other members have no meaning here. */
const credentialFile = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('service_account'),
    client_email: text,
    private_key: text,
    private_key_id: text.optional(),
    token_uri: url.default('https://oauth2.googleapis.com/token'),
  }),
  z.object({
    type: z.literal('authorized_user'),
    client_id: text,
    client_secret: text,
    refresh_token: text,
    token_uri: url.default('https://oauth2.googleapis.com/token'),
  }),
  z.object({
    type: z.literal('external_account'),
    audience: text,
    subject_token_type: text,
    token_url: url,
    service_account_impersonation_url: url.optional(),
    credential_source: z.object({
      file: text.optional(),
      url: url.optional(),
      headers: z.record(z.string(), z.string()).optional(),
      format: z.object({ type: text, subject_token_field_name: text.optional() }).optional(),
    }),
  }),
]);

type CredentialFile = z.output<typeof credentialFile>;
type FileOf<Type extends CredentialFile['type']> = Extract<CredentialFile, { type: Type }>;

/** Rejects with an error that contains no secret: only its kind is taken from what a server says. */
export async function fetchToken(source: TokenSource): Promise<Token> {
  const key = source.key.reveal();
  if (key === '') return metadataToken(source);
  const file = await readCredentials(key, source.signal);
  if (file.type === 'service_account') return serviceAccountToken(file, source);
  if (file.type === 'external_account') return federatedToken(file, source);
  const { client_id, client_secret, refresh_token } = file;
  return tokenFrom(source, file.token_uri, { grant_type: 'refresh_token', client_id, client_secret, refresh_token });
}

/** Read for each token, so that a file that is replaced has effect. */
async function readCredentials(key: string, signal: AbortSignal): Promise<CredentialFile> {
  const json = inlineJson(key) ?? tryParse(await fileText(key, signal));
  if (json === undefined) throw new Error('the credential file is no JSON');
  const read = credentialFile.safeParse(json);
  if (read.success) return read.data;
  const where = [...new Set(read.error.issues.map(({ path }) => path.join('.')))].join(', ');
  throw new Error(`the credential file is of no known type or lacks members: look at ${where}`);
}

/** undefined: the key is a path. */
function inlineJson(key: string): JsonObject | undefined {
  return objectOf(tryParse(key.startsWith('{') ? key : Buffer.from(key, 'base64').toString('utf8')));
}

async function fileText(path: string, signal: AbortSignal): Promise<string> {
  try {
    return await readFile(path, { encoding: 'utf8', signal });
  } catch (error) {
    throw new Error(
      `the credential file cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'it took too long'}`,
    );
  }
}

/** RFC 7523: a statement signed by the account's key, in exchange for a token. */
async function serviceAccountToken(file: FileOf<'service_account'>, source: TokenSource): Promise<Token> {
  const issuedAt = Math.floor(source.clock.now() / 1_000);
  const header = {
    alg: 'RS256',
    typ: 'JWT',
    ...(file.private_key_id === undefined ? {} : { kid: file.private_key_id }),
  };
  const claims = {
    iss: file.client_email,
    scope: source.scope,
    aud: file.token_uri,
    iat: issuedAt,
    exp: issuedAt + hourSeconds,
  };
  const statement = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const assertion = `${statement}.${signature(statement, file.private_key)}`;
  return tokenFrom(source, file.token_uri, { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion });
}

function signature(statement: string, privateKey: string): string {
  try {
    return sign('RSA-SHA256', Buffer.from(statement), createPrivateKey(privateKey)).toString('base64url');
  } catch {
    throw new Error('the private key in the credential file cannot be used');
  }
}

/** RFC 8693: the token of another identity provider in exchange for one of Google, and that for one of a service account. */
async function federatedToken(file: FileOf<'external_account'>, source: TokenSource): Promise<Token> {
  const impersonated = file.service_account_impersonation_url;
  const token = await tokenFrom(source, file.token_url, {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    audience: file.audience,
    scope: impersonated === undefined ? source.scope : 'https://www.googleapis.com/auth/cloud-platform',
    subject_token_type: file.subject_token_type,
    subject_token: await subjectToken(file.credential_source, source.signal),
  });
  if (impersonated === undefined) return token;
  const { json } = await fetched('the service that impersonates', impersonated, source.fetch, {
    method: 'POST',
    headers: { authorization: `Bearer ${token.value}`, 'content-type': 'application/json' },
    body: JSON.stringify({ scope: [source.scope], lifetime: `${hourSeconds}s` }),
    signal: source.signal,
  });
  return { value: tokenIn(json, 'accessToken'), endsAt: endOf(Date.parse(String(json['expireTime']))) };
}

async function subjectToken(
  from: FileOf<'external_account'>['credential_source'],
  signal: AbortSignal,
): Promise<string> {
  let written: string;
  if (from.file !== undefined) written = await fileText(from.file, signal);
  else if (from.url !== undefined)
    written = (await fetched('the identity provider', from.url, fetch, { headers: from.headers ?? {}, signal })).text;
  else throw new Error('the credential file names no `file` and no `url` as its source');
  const { type, subject_token_field_name: member = '' } = from.format ?? { type: 'text' };
  return type === 'json' ? tokenIn(objectOf(tryParse(written)) ?? {}, member) : written.trim();
}

async function metadataToken({ metadata, scope, clock, signal }: TokenSource): Promise<Token> {
  const address = `${metadata.replace(/\/+$/, '')}/computeMetadata/v1/instance/service-accounts/default/token`;
  const requestedAt = clock.now();
  const { json } = await fetched('the metadata server', `${address}?scopes=${encodeURIComponent(scope)}`, fetch, {
    headers: { 'metadata-flavor': 'Google' },
    signal,
  });
  return issued(json, requestedAt);
}

async function tokenFrom(
  { clock, fetch: send, signal }: TokenSource,
  address: string,
  form: Record<string, string>,
): Promise<Token> {
  const requestedAt = clock.now();
  const { json } = await fetched('the token server', address, send, {
    method: 'POST',
    body: new URLSearchParams(form),
    signal,
  });
  return issued(json, requestedAt);
}

function issued(json: JsonObject, requestedAt: number): Token {
  return { value: tokenIn(json, 'access_token'), endsAt: endOf(requestedAt + Number(json['expires_in']) * 1_000) };
}

function endOf(milliseconds: number): number {
  if (!Number.isFinite(milliseconds)) throw new Error('the token came without its lifetime');
  return milliseconds;
}

function tokenIn(json: JsonObject, member: string): string {
  const token = textOf(json[member]);
  if (token === undefined || !/^[\x21-\x7e]{1,16000}$/.test(token)) throw new Error('the answer contains no token');
  return token;
}

/** `who` answers, for errors: logs show no addresses. */
async function fetched(
  who: string,
  address: string,
  send: typeof fetch,
  init: RequestInit,
): Promise<{ text: string; json: JsonObject }> {
  const answer = await send(address, { ...init, redirect: 'error' }).catch((error: Error) => {
    throw new Error(`${who} cannot be reached: ${codeOf(error)}`);
  });
  const body = await boundedText(answer, mostBytes, () => new Error(`${who} sent too long an answer`));
  const parsed = tryParse(body);
  const json = isObject(parsed) ? parsed : {};
  if (!answer.ok) throw new Error(`${who} gave no token: status ${answer.status}${kindOf(json)}`);
  return { text: body, json };
}

function codeOf({ name, cause }: Error): string {
  return textOf((cause as NodeJS.ErrnoException | undefined)?.code) ?? name;
}

/** `invalid_grant`, `PERMISSION_DENIED`; sentences beside it may quote the request. */
function kindOf(json: JsonObject): string {
  const kind = textOf(json['error']) ?? textOf(objectOf(json['error'])?.['status']) ?? '';
  return /^[a-z_]{1,60}$/i.test(kind) ? `, ${kind}` : '';
}

/**
 * Fetches tokens of Entra: by OAuth 2 client credentials (RFC 6749, 4.4) with a secret or a federated token (RFC 7523), or for the
 * managed identity of the machine. The vendor's library for these two requests is 52 MB with its dependencies.
 */
import { readFile } from 'node:fs/promises';
import type { Clock } from '../../core/contract/host-tools.ts';
import type { Secret } from '../../core/contract/secret.ts';
import { isObject, type JsonObject, listOf, tryParse } from '../../core/json/json.ts';
import { boundedText } from '../common/kit/fetch/bounded-text.ts';
import type { Perishable } from '../common/wire/credentials.ts';

const mostBytes = 64 * 1024;
const mostTokenCharacters = 16_000;

interface TokenRequest {
  readonly tenant: string;
  readonly client_id: string;
  readonly token_file?: string | undefined;
  readonly authority: string;
  readonly scope: string;
}

interface TokenTools {
  readonly clock: Clock;
  readonly fetch: typeof fetch;
}

/** Rejects with an error that names neither the secret nor a token. */
export async function fetchToken(
  wanted: TokenRequest,
  key: Secret,
  tools: TokenTools,
  signal: AbortSignal,
): Promise<Perishable<string>> {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: wanted.client_id,
    scope: wanted.scope,
    ...(await proofOf(wanted, key, signal)),
  });
  const url = `${wanted.authority.replace(/\/+$/, '')}/${wanted.tenant}/oauth2/v2.0/token`;
  return tokenBy('the authority', url, { method: 'POST', body: form, signal }, tools);
}

export interface ManagedIdentity {
  readonly client_id?: string | undefined;
  readonly metadata: string;
  readonly resource: string;
}

/** Fetches a token from the metadata service of the machine: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token. */
export function fetchMachineToken(
  { client_id: id, metadata, resource }: ManagedIdentity,
  clock: Clock,
  signal: AbortSignal,
): Promise<Perishable<string>> {
  const query = new URLSearchParams({
    'api-version': '2018-02-01',
    resource,
    ...(id === undefined ? {} : { client_id: id }),
  });
  const url = `${metadata.replace(/\/+$/, '')}/metadata/identity/oauth2/token?${query}`;
  return tokenBy('the metadata service', url, { headers: { metadata: 'true' }, signal }, { clock, fetch });
}

async function tokenBy(
  who: string,
  url: string,
  request: RequestInit,
  { clock, fetch: send }: TokenTools,
): Promise<Perishable<string>> {
  const requestedAt = clock.now();
  const answer = await send(url, { ...request, redirect: 'error' });
  const body = tryParse(await boundedText(answer, mostBytes, () => new Error(`${who} sent too long an answer`)));
  const { access_token: token, expires_in: seconds } = isObject(body) ? body : {};
  if (!answer.ok || !isToken(token)) throw new Error(refusalText(who, answer.status, isObject(body) ? body : {}));
  const lifeMs = Number(seconds) * 1_000;
  if (!(lifeMs > 0)) throw new Error(`${who} gave a token without a lifetime`);
  return { value: token, endsAt: requestedAt + lifeMs };
}

async function proofOf(
  { token_file: file }: TokenRequest,
  key: Secret,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  if (file === undefined) return { client_secret: key.reveal() };
  const assertion = (await readFile(file, { encoding: 'utf8', signal })).trim();
  if (!isToken(assertion)) throw new Error(`${file} holds no token`);
  return {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  };
}

function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= mostTokenCharacters && /^[\x21-\x7e]+$/.test(value);
}

/** The kind of refusal and its numbers; the sentences beside them may quote the request. */
function refusalText(who: string, status: number, { error, error_codes: codes }: JsonObject): string {
  const kind = typeof error === 'string' && /^[a-z_]{1,60}$/.test(error) ? `: ${error}` : '';
  const numbers = listOf(codes).filter((code) => Number.isSafeInteger(code));
  return `${who} gave no token, status ${status}${kind}${numbers.length === 0 ? '' : ` (${numbers.slice(0, 3).join(', ')})`}`;
}

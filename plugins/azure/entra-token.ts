/**
 * Fetches a token by OAuth 2 client credentials (RFC 6749, 4.4), with a secret or a federated token (RFC 7523). The vendor's library
 * for this request of one form is 52 MB with what it needs.
 */
import { readFile } from 'node:fs/promises';
import type { Clock } from '../../core/contract/host-tools.ts';
import type { Secret } from '../../core/contract/secret.ts';
import { isObject, type JsonObject, listOf, tryParse } from '../../core/json/json.ts';
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

/** Rejects with an error that names neither the secret nor a token. */
export async function fetchToken(
  wanted: TokenRequest,
  key: Secret,
  clock: Clock,
  signal: AbortSignal,
): Promise<Perishable<string>> {
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: wanted.client_id,
    scope: wanted.scope,
    ...(await proofOf(wanted, key, signal)),
  });
  const askedAt = clock.now();
  const url = `${wanted.authority.replace(/\/+$/, '')}/${wanted.tenant}/oauth2/v2.0/token`;
  const answer = await fetch(url, { method: 'POST', body: form, redirect: 'error', signal });
  const body = tryParse(await boundedText(answer));
  const { access_token: token, expires_in: seconds } = isObject(body) ? body : {};
  if (!answer.ok || !isToken(token)) throw new Error(refusalText(answer.status, isObject(body) ? body : {}));
  const lifeMs = Number(seconds) * 1_000;
  if (!(lifeMs > 0)) throw new Error('the authority gave a token without a lifetime');
  return { value: token, endsAt: askedAt + lifeMs };
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

/** The kind of refusal and the authority's numbers for it; its sentences may quote what was sent. */
function refusalText(status: number, { error, error_codes: codes }: JsonObject): string {
  const kind = typeof error === 'string' && /^[a-z_]{1,60}$/.test(error) ? `: ${error}` : '';
  const numbers = listOf(codes).filter((code) => Number.isSafeInteger(code));
  return `the authority gave no token, status ${status}${kind}${numbers.length === 0 ? '' : ` (${numbers.slice(0, 3).join(', ')})`}`;
}

async function boundedText(answer: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of answer.body ?? []) {
    bytes += part.length;
    if (bytes > mostBytes) throw new Error('the authority sent too long an answer');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

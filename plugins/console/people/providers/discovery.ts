/** What a provider says of itself (OpenID Connect Discovery), and its page of claims; read within bounds. */
import type { Host } from '../../../../core/contract/contract.ts';
import { isObject, type JsonObject, textOf, tryParse } from '../../../../core/json/json.ts';

const longestMs = 8_000;
const mostBytes = 256 * 1024;

export interface Discovered {
  readonly authorization: string;
  readonly token: string;
  readonly keys: string;
  readonly userInfo: string | undefined;
  readonly endSession: string | undefined;
}

/** Why a provider cannot be used, in one sentence for operators. */
export class ProviderFault extends Error {
  override readonly name = 'ProviderFault';
}

export const discoveryAddress = (issuer: string) => `${plainIssuer(issuer)}/.well-known/openid-configuration`;

/** Some write the slash at its end and some do not. */
export const plainIssuer = (issuer: string) => issuer.replace(/\/$/, '');

/** Throws ProviderFault. */
export async function discover(fetch: Host['fetch'], issuer: string): Promise<Discovered> {
  const document = await readJson(fetch, discoveryAddress(issuer));
  const named = textOf(document['issuer']);
  if (named === undefined || plainIssuer(named) !== plainIssuer(issuer))
    throw new ProviderFault(`its discovery document is of another issuer (${String(named).slice(0, 200)})`);
  const algorithms = document['id_token_signing_alg_values_supported'];
  if (!Array.isArray(algorithms) || !algorithms.some((name) => /^(?:[RPE]S\d|Ed)/.test(String(name))))
    throw new ProviderFault('it signs ID tokens by no algorithm that is accepted here');
  const endpoint = (name: string) => endpointOf(document, name, issuer);
  const needed = (name: string) => {
    const address = endpoint(name);
    if (address === undefined) throw new ProviderFault(`its discovery document names no usable ${name}`);
    return address;
  };
  return {
    authorization: needed('authorization_endpoint'),
    token: needed('token_endpoint'),
    keys: needed('jwks_uri'),
    userInfo: endpoint('userinfo_endpoint'),
    endSession: endpoint('end_session_endpoint'),
  };
}

/** By TLS, unless the issuer itself is reached without. */
function endpointOf(document: JsonObject, name: string, issuer: string): string | undefined {
  const address = textOf(document[name]);
  if (address === undefined || !URL.canParse(address)) return undefined;
  const { protocol } = new URL(address);
  return protocol === 'https:' || (protocol === 'http:' && issuer.startsWith('http:')) ? address : undefined;
}

/** Throws ProviderFault. */
export async function readJson(fetch: Host['fetch'], address: string, token?: string): Promise<JsonObject> {
  let text: string;
  try {
    const answer = await fetch(address, {
      headers: { accept: 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      signal: AbortSignal.timeout(longestMs),
      allowPrivate: true,
      maxBytes: mostBytes,
    });
    text = await answer.text();
    if (!answer.ok) throw new ProviderFault(`it answered ${answer.status}`);
  } catch (error) {
    if (error instanceof ProviderFault) throw error;
    throw new ProviderFault(`it could not be reached (${(error as Error).message.slice(0, 200)})`);
  }
  const document = tryParse(text);
  if (!isObject(document)) throw new ProviderFault('its answer is not a JSON object');
  return document;
}

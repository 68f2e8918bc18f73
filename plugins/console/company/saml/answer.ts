/** What stands below `/console/saml`: metadata of this gateway, and where providers send their responses. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import { toGatewayError } from '../../../../core/contract/upstream-failures.ts';
import { authPath } from '../../people/auth-names.ts';
import { hashSecret } from '../../people/secrets.ts';
import type { Companies } from '../companies.ts';
import { SAML } from './packages.ts';
import { type SamlParts, type SamlProvider, samlAddresses, samlPath } from './parts.ts';
import { type Asserted, readResponse, SamlDenied } from './response.ts';
import { XmlFault } from './xml.ts';

/** From one address: the people of a company may all come from one. */
const mostInMinute = 300;
/** A response is brought back by its browser at once. */
const handleMs = 120_000;
/** Longer than a request is waited for, so that a response that was used is refused for as long as it could count. */
const usedMs = 3_600_000;
const longestRelay = 80;

interface Asked {
  readonly origin: string;
  readonly address: string;
}

export async function answerSaml({ companies }: { readonly companies: Companies }, request: Request, asked: Asked) {
  const [, id, isMetadata] =
    /^\/(company-[0-9a-f]{16})(\/metadata)?$/.exec(new URL(request.url).pathname.slice(samlPath.length)) ?? [];
  if (id === undefined) throw new GatewayError('not_found', 'There is nothing here.', { code: 'unknown_url' });
  if (isMetadata !== undefined && request.method === 'GET') return metadataOf(id, asked.origin);
  if (isMetadata !== undefined || request.method !== 'POST')
    throw new GatewayError('method_not_allowed', 'Providers send responses by POST.');
  try {
    return redirect(await taken(companies, id, request, asked));
  } catch (error) {
    const { code, kind } = toGatewayError(error);
    return redirect(`/console/sign-in?error=${encodeURIComponent(code ?? kind)}`);
  }
}

/** By GET, whatever came before. */
const redirect = (location: string) => new Response(null, { status: 303, headers: { location } });

function metadataOf(id: string, origin: string): Response {
  const { acs, entityId } = samlAddresses(origin, id);
  const saml = new SAML({
    // It is needed for responses alone.
    idpCert: 'none',
    issuer: entityId,
    callbackUrl: acs,
    wantAssertionsSigned: true,
    identifierFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
  });
  return new Response(saml.generateServiceProviderMetadata(null), {
    headers: { 'content-type': 'application/samlmetadata+xml', 'cache-control': 'no-store' },
  });
}

/** Where the browser goes on. */
async function taken(companies: Companies, id: string, request: Request, { origin, address }: Asked): Promise<string> {
  const { saml: parts } = companies;
  if (parts.throttle.take(`saml:${address}`, mostInMinute, 60_000) > 0)
    throw new GatewayError('rate_limited', 'Too many responses. Try again later.');
  const provider = await companies.found(id);
  if (provider?.saml === undefined)
    throw new GatewayError('not_found', 'There is no such provider.', { code: 'oauth_provider_not_found' });
  const form = new URLSearchParams(await request.text());
  const asserted = await read(parts, provider as SamlProvider, form.get('SAMLResponse') ?? '', origin);
  const relay = (form.get('RelayState') ?? '').slice(0, longestRelay);
  const handle = await keep(parts, id, asserted, relay);
  return `${authPath}/callback/${id}?saml=${handle}`;
}

async function read(parts: SamlParts, provider: SamlProvider, response: string, origin: string): Promise<Asserted> {
  const { acs, entityId: audience } = samlAddresses(origin, provider.id);
  try {
    return await readResponse(response, { settings: provider.saml, acs, audience, now: parts.clock.now() });
  } catch (error) {
    // Deep nesting ends in a RangeError.
    const reason = error instanceof XmlFault || error instanceof RangeError ? error.message : (error as Error).name;
    parts.log.warn({ provider: provider.id, reason }, 'the response of a SAML provider is not taken');
    const code = error instanceof SamlDenied ? 'access_denied' : 'saml_response';
    throw new GatewayError('invalid_request', 'The response of the provider is not taken.', { code });
  }
}

/** Once in all processes; the second of two at once finds it used. */
async function keep(parts: SamlParts, id: string, asserted: Asserted, relay: string): Promise<string> {
  const { orm, clock, random } = parts;
  const { verification } = parts.tables;
  const handle = random.bytes(24).toString('base64url');
  const now = clock.now();
  const at = { createdAt: new Date(now), updatedAt: new Date(now) };
  const used = usedIdOf(id, asserted.id);
  await orm.transaction(async (inner) => {
    const taken = await inner
      .insert(verification)
      .values({ id: used, identifier: used, value: '', expiresAt: new Date(now + usedMs), ...at })
      .onConflictDoNothing()
      .returning({ id: verification.id });
    if (taken.length === 0)
      throw new GatewayError('conflict', 'The response was used.', { code: 'saml_response_used' });
    const key = handleIdOf(handle);
    const value = JSON.stringify({
      ...asserted,
      attributes: Object.fromEntries(asserted.attributes),
      provider: id,
      relay,
    });
    await inner
      .insert(verification)
      .values({ id: key, identifier: key, value, expiresAt: new Date(now + handleMs), ...at });
  });
  return handle;
}

const usedIdOf = (provider: string, assertion: string) =>
  `saml-used:${hashSecret(JSON.stringify([provider, assertion]))}`;
export const handleIdOf = (handle: string) => `saml:${hashSecret(handle)}`;

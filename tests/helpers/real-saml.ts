/** An identity provider for SAML 2.0 (`samlify`) on loopback, which signs in the person that a test names without asking. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';

interface Entity {
  readonly entityMeta: { getEntityID(): string; getAssertionConsumerService(binding: 'post'): string };
  readonly entitySetting: { wantMessageSigned?: boolean };
}
interface Idp extends Entity {
  parseLoginRequest(
    sp: Entity,
    binding: 'redirect',
    request: object,
  ): Promise<{ readonly extract: { readonly request: { readonly id: string } } }>;
  createLoginResponse(
    sp: Entity,
    request: object,
    binding: 'post',
    user: object,
    fill: () => { readonly id: string; readonly context: string },
  ): Promise<{ readonly context: string }>;
}
/** Its own types bring those of browsers into all tests. */
interface Samlify {
  IdentityProvider(settings: object): Idp;
  ServiceProvider(settings: { readonly metadata: string }): Entity;
  setSchemaValidator(validator: { validate(): Promise<string> }): void;
  readonly SamlLib: { replaceTagsByValue(template: string, tags: Readonly<Record<string, string>>): string };
}
const require = createRequire(import.meta.url);
const { IdentityProvider, ServiceProvider, setSchemaValidator, SamlLib } = require('samlify') as Samlify;

const read = (name: string) => readFileSync(new URL(`certificates/${name}`, import.meta.url), 'utf8');
const certificate = (name: 'one' | 'two' | 'weak') => read(`saml-${name}.pem`);
const redirect = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';

export interface Issued {
  /** As a browser posts it. */
  readonly form: { readonly SAMLResponse: string; readonly RelayState: string };
  readonly xml: string;
}

export interface SamlPerson {
  readonly nameId: string;
  readonly format?: string;
  readonly attributes?: Readonly<Record<string, readonly string[]>>;
}

/** What a response says otherwise than it should. `edit`: its XML before it is signed. */
export interface Otherwise {
  readonly tags?: Readonly<Record<string, string>>;
  readonly edit?: (xml: string) => string;
  readonly key?: 'one' | 'two';
  readonly algorithm?: string;
  /** Signs the response too. */
  readonly whole?: boolean;
  /** Signs nothing. */
  readonly unsigned?: boolean;
}

export interface RealSaml {
  readonly entityId: string;
  readonly metadataUrl: string;
  /** Certificates in its metadata, the first is the one that signs. */
  certificates: readonly ('one' | 'two' | 'weak')[];
  metadata(): string;
  /** The response to the request in this address, for this person. */
  issue(address: string, person: SamlPerson, otherwise?: Otherwise): Promise<Issued>;
  close(): void;
}

/** `spMetadata`: what the gateway says of itself. */
export async function startRealSaml(spMetadata: string): Promise<RealSaml> {
  // Its parser takes any schema: the gateway's own requests are all that it reads.
  setSchemaValidator({ validate: async () => 'valid' });
  const server = createServer((_: IncomingMessage, outgoing: ServerResponse) => {
    outgoing.writeHead(200, { 'content-type': 'application/samlmetadata+xml' }).end(made.metadata());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const entityId = `${origin}/entity`;
  const sp = ServiceProvider({ metadata: spMetadata });
  const provider = (key: 'one' | 'two', algorithm: string) =>
    IdentityProvider({
      ...{ entityID: entityId, signingCert: certificate(key), privateKey: read(`saml-${key}.key`) },
      ...{ wantAuthnRequestsSigned: false, isAssertionEncrypted: false, requestSignatureAlgorithm: algorithm },
      singleSignOnService: [{ Binding: redirect, Location: `${origin}/sso` }],
      singleLogoutService: [{ Binding: redirect, Location: `${origin}/slo` }],
      loginResponseTemplate: { context: template, attributes: [] },
    });
  const made: RealSaml = {
    entityId,
    metadataUrl: `${origin}/metadata`,
    certificates: ['one'],
    metadata: () => metadataOf(entityId, origin, made.certificates),
    async issue(address, person, otherwise = {}) {
      const { searchParams } = new URL(address);
      const query = Object.fromEntries(searchParams);
      const idp = provider(otherwise.key ?? 'one', otherwise.algorithm ?? sha256);
      const asked = await idp.parseLoginRequest(sp, 'redirect', { query });
      const xml = await responseOf({ idp, sp, request: asked.extract.request.id, person, otherwise });
      const form = { SAMLResponse: Buffer.from(xml).toString('base64'), RelayState: query['RelayState']! };
      return { form, xml };
    },
    close: () => server.close(),
  };
  return made;
}

const sha256 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256';

interface Responding {
  readonly idp: Idp;
  readonly sp: Entity;
  readonly request: string;
  readonly person: SamlPerson;
  readonly otherwise: Otherwise;
}

async function responseOf({ idp, sp, request, person, otherwise }: Responding): Promise<string> {
  const now = Date.now();
  const at = (minutes: number) => new Date(now + minutes * 60_000).toISOString();
  const acs = String(sp.entityMeta.getAssertionConsumerService('post'));
  const attributes = Object.entries(person.attributes ?? {}).map(
    ([name, values]) =>
      `<saml:Attribute Name="${escaped(name)}">${values.map((value) => `<saml:AttributeValue>${escaped(value)}</saml:AttributeValue>`).join('')}</saml:Attribute>`,
  );
  const tags = {
    ...{ ID: `_r${now}${Math.random()}`.replace('.', ''), AssertionID: `_a${now}${Math.random()}`.replace('.', '') },
    ...{ Destination: acs, SubjectRecipient: acs, Audience: sp.entityMeta.getEntityID(), InResponseTo: request },
    ...{ Issuer: idp.entityMeta.getEntityID(), IssueInstant: at(0), ConditionsNotBefore: at(-1) },
    ...{ ConditionsNotOnOrAfter: at(5), SubjectConfirmationDataNotOnOrAfter: at(5), NameID: escaped(person.nameId) },
    StatusCode: 'urn:oasis:names:tc:SAML:2.0:status:Success',
    NameIDFormat: person.format ?? 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
    ...otherwise.tags,
  };
  const xml = SamlLib.replaceTagsByValue(template, tags).replace('<!attributes>', attributes.join(''));
  const context = (otherwise.edit ?? String)(xml);
  if (otherwise.unsigned) return context;
  sp.entitySetting.wantMessageSigned = otherwise.whole === true;
  const { context: signed } = await idp.createLoginResponse(
    sp,
    { extract: { request: { id: request } } },
    'post',
    {},
    () => ({ id: tags.ID, context }),
  );
  return Buffer.from(signed, 'base64').toString();
}

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

const template = `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="{ID}" Version="2.0" IssueInstant="{IssueInstant}" Destination="{Destination}" InResponseTo="{InResponseTo}"><saml:Issuer>{Issuer}</saml:Issuer><samlp:Status><samlp:StatusCode Value="{StatusCode}"/></samlp:Status><saml:Assertion ID="{AssertionID}" Version="2.0" IssueInstant="{IssueInstant}"><saml:Issuer>{Issuer}</saml:Issuer><saml:Subject><saml:NameID Format="{NameIDFormat}">{NameID}</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData NotOnOrAfter="{SubjectConfirmationDataNotOnOrAfter}" Recipient="{SubjectRecipient}" InResponseTo="{InResponseTo}"/></saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="{ConditionsNotBefore}" NotOnOrAfter="{ConditionsNotOnOrAfter}"><saml:AudienceRestriction><saml:Audience>{Audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement AuthnInstant="{IssueInstant}"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement><!attributes></saml:AttributeStatement></saml:Assertion></samlp:Response>`;

const metadataOf = (entityId: string, origin: string, names: RealSaml['certificates']) =>
  `<?xml version="1.0"?><!-- of this test --><md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="${entityId}"><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">${names
    .map(
      (name) =>
        `<md:KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>${certificate(name).replace(/-----[A-Z ]+-----/g, '')}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`,
    )
    .join(
      '',
    )}<md:SingleSignOnService Binding="${redirect}" Location="${origin}/sso"/></md:IDPSSODescriptor></md:EntityDescriptor>`;

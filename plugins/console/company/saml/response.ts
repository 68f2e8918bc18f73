/** Who a response of an identity provider speaks of: what its signature covers, read once more and checked in full. Throws XmlFault. */
import type { SamlSettings } from '../types.ts';
import { SAML, type XmlElement } from './packages.ts';
import { attributesOf, childrenOf, countOf, onlyChild, readXml, textIn, XmlFault } from './xml.ts';

const protocolNames = 'urn:oasis:names:tc:SAML:2.0:protocol';
const names = 'urn:oasis:names:tc:SAML:2.0:assertion';
const success = 'urn:oasis:names:tc:SAML:2.0:status:Success';
const bearer = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';
const transient = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient';
/** Clocks may differ by so much. */
const skewMs = 120_000;
const mostBytes = 200 * 1024;
/** Opening and closing ones. */
const mostTags = 6_000;
const mostAttributes = 200;
const mostValues = 2_000;
const longestName = 255;

/** Without SHA-1, MD5 and keys that both sides know. */
const allowed: readonly (readonly [element: string, algorithms: readonly string[]])[] = [
  [
    'SignatureMethod',
    ['http://www.w3.org/2001/04/xmldsig-more#rsa-sha256', 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512'],
  ],
  ['DigestMethod', ['http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2001/04/xmlenc#sha512']],
  ['CanonicalizationMethod', ['http://www.w3.org/2001/10/xml-exc-c14n#']],
  ['Transform', ['http://www.w3.org/2000/09/xmldsig#enveloped-signature', 'http://www.w3.org/2001/10/xml-exc-c14n#']],
];

/** The person said no there, or the provider did. */
export class SamlDenied extends XmlFault {}

export interface Asserted {
  readonly id: string;
  readonly inResponseTo: string;
  readonly nameId: string;
  readonly nameFormat: string;
  readonly attributes: ReadonlyMap<string, readonly string[]>;
}

export interface Expected {
  readonly settings: SamlSettings;
  /** Where responses are taken. */
  readonly acs: string;
  /** Name of this gateway at the provider. */
  readonly audience: string;
  readonly now: number;
}

export async function readResponse(base64: string, expected: Expected): Promise<Asserted> {
  const text = decoded(base64);
  const root = readXml(text, mostTags);
  checkShape(root, expected);
  const isSigned = childrenOf(root, 'http://www.w3.org/2000/09/xmldsig#', 'Signature').length > 0;
  const verified = readXml(await verifiedXml(text, expected, isSigned));
  if (verified.localName !== 'Assertion' || verified.namespaceURI !== names)
    throw new XmlFault('its signature does not cover the assertion');
  const asserted = readAssertion(verified, expected);
  const answered = root.getAttribute('InResponseTo');
  if (answered !== null && answered !== '' && answered !== asserted.inResponseTo)
    throw new XmlFault('response and assertion answer different requests');
  return asserted;
}

function decoded(base64: string): string {
  if (base64.length > mostBytes * 1.4 || !/^[A-Za-z0-9+/=\s]+$/.test(base64))
    throw new XmlFault('it is no base64, or too long');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(base64, 'base64'));
  } catch {
    throw new XmlFault('it is not in UTF-8');
  }
}

/** With one assertion in one response, a signature has nothing to be moved around. */
function checkShape(root: XmlElement, { acs, settings }: Expected): void {
  if (root.localName !== 'Response' || root.namespaceURI !== protocolNames) throw new XmlFault('it is not a response');
  const status = onlyChild(onlyChild(root, protocolNames, 'Status'), protocolNames, 'StatusCode').getAttribute('Value');
  if (status !== success) throw new SamlDenied(`its status is ${String(status).slice(0, 200)}`);
  if (countOf(root, 'EncryptedAssertion') > 0 || countOf(root, 'EncryptedID') > 0)
    throw new XmlFault('it is encrypted, which is not supported: TLS keeps it secret');
  if (countOf(root, 'Response') !== 1 || countOf(root, 'Assertion') !== 1)
    throw new XmlFault('it does not have exactly one assertion');
  const signatures = countOf(root, 'Signature');
  if (signatures < 1 || signatures > 2 || countOf(root, 'Object') > 0)
    throw new XmlFault('its assertion is not signed once');
  for (const [name, known] of allowed) {
    const unknown = attributesOf(root, name, 'Algorithm').find((one) => one === null || !known.includes(one));
    if (unknown !== undefined) throw new XmlFault(`it is signed by an algorithm that is not taken (${unknown})`);
  }
  onlyChild(root, names, 'Assertion');
  const destination = root.getAttribute('Destination');
  if (destination !== null && destination !== '' && destination !== acs)
    throw new XmlFault('it is for another address');
  const issuers = childrenOf(root, names, 'Issuer').map(textIn);
  if (issuers.some((issuer) => issuer !== settings.entityId)) throw new XmlFault('it is of another provider');
}

/** What the signature covers, as text. */
async function verifiedXml(text: string, { settings, acs, audience }: Expected, isSigned: boolean): Promise<string> {
  const saml = new SAML({
    idpCert: [...settings.certificates],
    issuer: audience,
    callbackUrl: acs,
    audience,
    wantAssertionsSigned: true,
    wantAuthnResponseSigned: isSigned,
    // Times and the request are checked by this gateway's clock and cookie.
    acceptedClockSkewMs: -1,
    validateInResponseTo: 'never',
  });
  try {
    const { profile } = await saml.validatePostResponseAsync({ SAMLResponse: Buffer.from(text).toString('base64') });
    return String(profile!.getAssertionXml!());
  } catch (error) {
    throw new XmlFault(`its signature or its audience is not right (${(error as Error).message.slice(0, 200)})`);
  }
}

function readAssertion(assertion: XmlElement, expected: Expected): Asserted {
  const { settings, now } = expected;
  const id = assertion.getAttribute('ID') ?? '';
  if (id === '' || id.length > longestName || assertion.getAttribute('Version') !== '2.0')
    throw new XmlFault('its assertion is not one of SAML 2.0');
  if (textIn(onlyChild(assertion, names, 'Issuer')) !== settings.entityId)
    throw new XmlFault('it is of another provider');
  if (timeOf(assertion, 'IssueInstant', 'needed') > now + skewMs) throw new XmlFault('it is from the future');
  checkConditions(onlyChild(assertion, names, 'Conditions'), expected);
  const statements = childrenOf(assertion, names, 'AuthnStatement');
  if (statements.length === 0) throw new XmlFault('it does not say that somebody has signed in');
  if (statements.some((one) => timeOf(one, 'SessionNotOnOrAfter') <= now - skewMs)) throw new XmlFault('it is too old');
  const subject = onlyChild(assertion, names, 'Subject');
  const name = onlyChild(subject, names, 'NameID');
  const nameId = textIn(name);
  const nameFormat = name.getAttribute('Format') ?? '';
  if (nameId === '' || nameId.length > longestName || /\p{Cc}/u.test(nameId))
    throw new XmlFault('its NameID is not usable');
  if (nameFormat === transient) throw new XmlFault('its NameID is transient, so that no one would be known again');
  return {
    id,
    inResponseTo: confirmedRequest(subject, expected),
    nameId,
    nameFormat,
    attributes: attributesIn(assertion),
  };
}

/** `bearer`: for this address, now, and for a request of ours. */
function confirmedRequest(subject: XmlElement, { acs, now }: Expected): string {
  for (const one of childrenOf(subject, names, 'SubjectConfirmation')) {
    const [data] = childrenOf(one, names, 'SubjectConfirmationData');
    if (one.getAttribute('Method') !== bearer || data === undefined || data.getAttribute('Recipient') !== acs) continue;
    const inResponseTo = data.getAttribute('InResponseTo') ?? '';
    const isNow = timeOf(data, 'NotOnOrAfter', 'needed') > now - skewMs && !data.getAttribute('NotBefore');
    if (isNow && inResponseTo !== '') return inResponseTo;
  }
  throw new XmlFault('it is not confirmed for this address, this time and a request from here');
}

const known = new Set(['AudienceRestriction', 'OneTimeUse', 'ProxyRestriction']);

function checkConditions(conditions: XmlElement, { audience, now }: Expected): void {
  if (timeOf(conditions, 'NotBefore', 0) > now + skewMs) throw new XmlFault('it is not valid yet');
  if (timeOf(conditions, 'NotOnOrAfter') <= now - skewMs) throw new XmlFault('it is too old');
  const elements = Array.from(conditions.childNodes).filter((node): node is XmlElement => node.nodeType === 1);
  if (elements.some(({ localName }) => !known.has(localName)))
    throw new XmlFault('it has a condition that is not known');
  const restrictions = childrenOf(conditions, names, 'AudienceRestriction');
  const isOurs = (one: XmlElement) => childrenOf(one, names, 'Audience').map(textIn).includes(audience);
  if (restrictions.length === 0 || !restrictions.every(isOurs)) throw new XmlFault('it is for another audience');
}

/** In UTC, as SAML has times. `otherwise`: where there is none. */
function timeOf(element: XmlElement, name: string, otherwise: number | 'needed' = Number.POSITIVE_INFINITY): number {
  const text = element.getAttribute(name);
  if ((text === null || text === '') && otherwise !== 'needed') return otherwise;
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)$/.test(text ?? ''))
    throw new XmlFault(`its ${name} is not a time`);
  return Date.parse(text!);
}

function attributesIn(assertion: XmlElement): Map<string, string[]> {
  const found = new Map<string, string[]>();
  let values = 0;
  for (const one of childrenOf(assertion, names, 'AttributeStatement').flatMap((all) =>
    childrenOf(all, names, 'Attribute'),
  )) {
    const name = one.getAttribute('Name') ?? '';
    const texts = childrenOf(one, names, 'AttributeValue').flatMap((value) => {
      const isPlain = Array.from(value.childNodes).every((node) => node.nodeType === 3);
      return isPlain ? [(value.textContent ?? '').trim()] : [];
    });
    values += texts.length;
    if (found.size >= mostAttributes || values > mostValues) throw new XmlFault('it has too many attributes');
    found.set(name, [...(found.get(name) ?? []), ...texts]);
  }
  return found;
}

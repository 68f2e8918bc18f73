/** What an identity provider says of itself (SAML 2.0 metadata). */
import { X509Certificate } from 'node:crypto';
import type { XmlElement } from './packages.ts';
import { childrenOf, readXml, textIn, XmlFault } from './xml.ts';

const namespace = 'urn:oasis:names:tc:SAML:2.0:metadata';
const signatures = 'http://www.w3.org/2000/09/xmldsig#';
const protocol = 'urn:oasis:names:tc:SAML:2.0:protocol';
const redirect = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';
/** The old one and the new one, and what a provider keeps for others. */
const mostCertificates = 5;
const leastBits = 2048;
const longestName = 500;
const longestAddress = 2_000;

export interface IdentityProvider {
  readonly entityId: string;
  /** Where people are sent (HTTP-Redirect). */
  readonly entry: string;
  /** In PEM; a signature by any of them counts. */
  readonly certificates: readonly string[];
}

/** Throws XmlFault. `isAnyAllowed`: its page may be reached without TLS. */
export function readMetadata(text: string, now: number, isAnyAllowed: boolean): IdentityProvider {
  const entity = entityIn(readXml(text.replace(/<!--[\s\S]*?-->/g, '')));
  const until = entity.getAttribute('validUntil');
  if (until !== null && until !== '' && !(Date.parse(until) > now)) throw new XmlFault('it is not valid any more');
  const entityId = entity.getAttribute('entityID') ?? '';
  if (entityId === '' || entityId.length > longestName || /\p{Cc}/u.test(entityId))
    throw new XmlFault('it names no usable entityID');
  const [role] = rolesOf(entity);
  if (role === undefined) throw new XmlFault('it is not of an identity provider for SAML 2.0');
  return { entityId, entry: entryOf(role, isAnyAllowed), certificates: certificatesOf(role) };
}

const rolesOf = (entity: XmlElement) =>
  childrenOf(entity, namespace, 'IDPSSODescriptor').filter((role) =>
    (role.getAttribute('protocolSupportEnumeration') ?? '').split(/\s+/).includes(protocol),
  );

function entityIn(root: XmlElement): XmlElement {
  if (root.namespaceURI !== namespace) throw new XmlFault('it is not SAML metadata');
  if (root.localName === 'EntityDescriptor') return root;
  const found = childrenOf(root, namespace, 'EntityDescriptor').filter((one) => rolesOf(one).length > 0);
  if (found.length !== 1) throw new XmlFault('it is of several identity providers, or of none');
  return found[0]!;
}

function entryOf(role: XmlElement, isAnyAllowed: boolean): string {
  const addresses = childrenOf(role, namespace, 'SingleSignOnService')
    .filter((one) => one.getAttribute('Binding') === redirect)
    .map((one) => one.getAttribute('Location') ?? '');
  const usable = addresses.find(
    (address) =>
      address.length <= longestAddress &&
      URL.canParse(address) &&
      (address.startsWith('https:') || (isAnyAllowed && address.startsWith('http:'))),
  );
  if (usable === undefined) throw new XmlFault('it names no usable address for signing in by HTTP-Redirect');
  return usable;
}

function certificatesOf(role: XmlElement): string[] {
  const signing = childrenOf(role, namespace, 'KeyDescriptor').filter((key) =>
    ['signing', '', null].includes(key.getAttribute('use')),
  );
  const written = signing.flatMap((key) =>
    Array.from(key.getElementsByTagNameNS(signatures, 'X509Certificate')).map(textIn),
  );
  const found = [...new Set(written.map(certificateOf).filter((one) => one !== undefined))];
  if (found.length === 0) throw new XmlFault(`it has no signing certificate with an RSA key of ${leastBits} bits`);
  if (found.length > mostCertificates) throw new XmlFault(`it has more than ${mostCertificates} signing certificates`);
  return found;
}

/** undefined: with a key that is not taken. */
function certificateOf(base64: string): string | undefined {
  let read: X509Certificate;
  try {
    read = new X509Certificate(Buffer.from(base64, 'base64'));
  } catch {
    throw new XmlFault('one of its certificates cannot be read');
  }
  const { asymmetricKeyType, asymmetricKeyDetails } = read.publicKey;
  const isTaken = asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) >= leastBits;
  return isTaken ? read.toString() : undefined;
}

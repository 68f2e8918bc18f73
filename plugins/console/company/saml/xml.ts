/** XML of identity providers, read within bounds and without what XML can do besides holding data. */
import { DOMParser, type XmlElement, type XmlNode } from './packages.ts';

/** Why XML of a provider is not taken, in one sentence for those who set it up. */
export class XmlFault extends Error {
  override readonly name = 'XmlFault';
}

/** A provider's metadata may have so many; responses have fewer. */
const mostTags = 20_000;

/**
 * No document type (entities, addresses), no comments, no CDATA, no processing instructions: signatures leave comments out, so that a name could
 * be read in parts. Throws XmlFault.
 */
export function readXml(text: string, most = mostTags): XmlElement {
  const body = text.replace(/^\uFEFF?\s*<\?xml\s[^<>]*\?>/, '');
  if (/<[!?]/.test(body)) throw new XmlFault('it has a document type, a comment or an instruction');
  if (body.split('<').length > most) throw new XmlFault('it has too many elements');
  const refuse = (message: string) => {
    throw new XmlFault(`it is not XML (${message.slice(0, 100)})`);
  };
  const errorHandler = { warning: refuse, error: refuse, fatalError: refuse };
  const documentElement = new DOMParser({ errorHandler }).parseFromString(body, 'text/xml')?.documentElement;
  if (documentElement === null || documentElement === undefined) throw new XmlFault('it is empty');
  return documentElement;
}

const isElement = (node: XmlNode): node is XmlElement => node.nodeType === 1;

export const childrenOf = (of: XmlElement, namespace: string, name: string): XmlElement[] =>
  Array.from(of.childNodes).filter(
    (node): node is XmlElement => isElement(node) && node.localName === name && node.namespaceURI === namespace,
  );

/** Throws XmlFault where there is none, or are several. */
export function onlyChild(of: XmlElement, namespace: string, name: string): XmlElement {
  const [first, ...more] = childrenOf(of, namespace, name);
  if (first === undefined || more.length > 0) throw new XmlFault(`it does not have exactly one ${name}`);
  return first;
}

/** In all of it, whatever the namespace. */
export const countOf = (root: XmlElement, name: string): number =>
  root.getElementsByTagNameNS('*', name).length + (root.localName === name ? 1 : 0);

export const attributesOf = (root: XmlElement, element: string, attribute: string): (string | null)[] =>
  Array.from(root.getElementsByTagNameNS('*', element)).map((one) => one.getAttribute(attribute));

/** Text alone, without white space around it. Throws XmlFault where there are elements in it. */
export function textIn(element: XmlElement): string {
  if (Array.from(element.childNodes).some((node) => node.nodeType !== 3))
    throw new XmlFault(`${element.localName} has more than text`);
  return (element.textContent ?? '').trim();
}

/** The packages that read and check XML, with as much of their types as is used: with their own, all of this program would know a browser's globals. */
import { createRequire } from 'node:module';

export interface XmlNode {
  /** 1: an element, 3: text. */
  readonly nodeType: number;
  readonly textContent: string | null;
}
export interface XmlElement extends XmlNode {
  readonly localName: string;
  readonly namespaceURI: string | null;
  readonly childNodes: ArrayLike<XmlNode>;
  /** Empty where there is none. */
  getAttribute(name: string): string | null;
  getElementsByTagNameNS(namespace: string, name: string): ArrayLike<XmlElement>;
}

interface Xml {
  readonly DOMParser: new (options: {
    readonly errorHandler: Readonly<Record<'warning' | 'error' | 'fatalError', (message: string) => void>>;
  }) => {
    parseFromString(text: string, type: 'text/xml'): { readonly documentElement: XmlElement | null } | undefined;
  };
}

interface Options {
  /** In PEM. */
  readonly idpCert: string | string[];
  /** Name of this gateway. */
  readonly issuer: string;
  readonly callbackUrl: string;
  readonly entryPoint?: string;
  readonly audience?: string;
  readonly wantAssertionsSigned?: boolean;
  readonly wantAuthnResponseSigned?: boolean;
  /** -1: times are not looked at. */
  readonly acceptedClockSkewMs?: number;
  readonly validateInResponseTo?: 'never';
  readonly disableRequestedAuthnContext?: boolean;
  readonly identifierFormat?: string | null;
  readonly generateUniqueId?: () => string;
}

interface Saml {
  readonly SAML: new (
    options: Options,
  ) => {
    getAuthorizeUrlAsync(relayState: string, host: undefined, options: object): Promise<string>;
    generateServiceProviderMetadata(decryption: null): string;
    validatePostResponseAsync(form: { readonly SAMLResponse: string }): Promise<{
      /** What the signature covers. */
      readonly profile: { getAssertionXml?(): string } | null;
    }>;
  };
}

const require = createRequire(import.meta.url);
export const { DOMParser } = require('@xmldom/xmldom') as Xml;
export const { SAML } = require('@node-saml/node-saml') as Saml;

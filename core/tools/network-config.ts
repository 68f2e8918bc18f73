/** Settings of the way to an upstream or another service: proxy, certificates, address family; and the network that they make. */
import { hash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { UpstreamNetwork } from '../contract/exchange.ts';
import { listOf, secretText, z } from '../contract/schema.ts';
import { secret } from '../contract/secret.ts';
import { addressFamilies, secureContextOf } from './network.ts';

const proxyForm = 'must be a URL such as http://user:password@proxy.example:3128, https://… or socks5://…';

/** Empty: none, as an unset variable leaves it. */
export const proxySchema = z
  .string({ error: ({ input }) => (input === undefined ? undefined : proxyForm) })
  .max(2_000)
  .refine((value) => value === '' || isStored(value) || isProxy(value), proxyForm);

/** The name of a stored secret, of which the text is not known where only files are read. */
const isStored = (value: string) => /^secret:[\w.-]+$/.test(value);

function isProxy(value: string): boolean {
  if (!/^(?:https?|socks5h?):\/\/[^/]/.test(value) || !URL.canParse(value)) return false;
  const { pathname, search, hash: fragment } = new URL(value);
  return (pathname === '' || pathname === '/') && search === '' && fragment === '';
}

/** Text in PEM, or the path of a file with it. */
const pem = z.string().transform((value, context) => {
  if (value === '' || isStored(value) || value.includes('-----BEGIN ')) return value;
  try {
    return readFileSync(value, 'utf8');
  } catch (error) {
    const message = `the file cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  }
});

export const tlsSchema = z
  .strictObject({
    ca: listOf(pem)
      .prefault([])
      .describe(
        'Certificates that are trusted beside the usual ones: PEM, or the path of a file with it; one or a list. Set it for a server with a certificate of a private authority.',
      ),
    cert: pem
      .optional()
      .describe(
        "The gateway's own certificate for servers that ask for one: PEM, or the path of a file. Set it together with its key. Default: none.",
      ),
    key: pem
      .optional()
      .describe(
        'The key of that certificate: PEM, or the path of a file with it. Set it together with the certificate. Default: none.',
      ),
    passphrase: secretText()
      .optional()
      .describe('Passphrase of that key. Set it when the key is encrypted. Default: none.'),
  })
  .superRefine(({ ca, cert = '', key = '', passphrase }, context) => {
    const refuse = (name: string, message: string) => context.addIssue({ code: 'custom', path: [name], message });
    if ([...ca, cert, key].some(isStored)) return;
    if (!ca.every(hasCertificates)) refuse('ca', 'is no certificate in PEM');
    if (cert !== '' && key === '') refuse('key', 'is missing: a certificate needs its key');
    else if (key !== '' && cert === '') refuse('cert', 'is missing: a key needs its certificate');
    else if (cert !== '' && !isAccepted({ ca: [], cert, key: secret(key), ...passphraseOf(passphrase) }))
      refuse('cert', 'is no certificate in PEM that fits its key');
  });

/** A text of other content would be ignored in silence. */
function hasCertificates(text: string): boolean {
  try {
    return blocksIn(text).map((block) => new X509Certificate(block)).length > 0;
  } catch {
    return false;
  }
}

/** The certificates of a text in PEM. */
export const blocksIn = (text: string): string[] =>
  text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];

function isAccepted(certificates: Parameters<typeof secureContextOf>[0]): boolean {
  try {
    secureContextOf(certificates);
    return true;
  } catch {
    return false;
  }
}

function passphraseOf(passphrase: string | undefined) {
  return passphrase === undefined || passphrase === '' ? {} : { passphrase: secret(passphrase) };
}

export const familySchema = z
  .enum(addressFamilies)
  .optional()
  .describe(
    "Which of the vendor's addresses are used: IPv4 or IPv6 first, or these alone. Set it where one of the two networks is broken. Default: as the system orders them.",
  );

export interface NetworkSettings {
  readonly proxy?: string | undefined;
  readonly tls?: z.output<typeof tlsSchema> | undefined;
  readonly family?: z.output<typeof familySchema>;
}

/** Whether a network can be made from these settings, after their secrets were filled in. */
export function isUsable({ proxy = '', tls }: NetworkSettings): boolean {
  return (proxy === '' || isProxy(proxy)) && (tls === undefined || tlsSchema.safeParse(tls).success);
}

/** undefined: vendors are reached directly. Equal settings make networks of one name. */
export function networkOf({ proxy = '', tls, family }: NetworkSettings): UpstreamNetwork | undefined {
  const { ca = [], cert = '', key = '', passphrase } = tls ?? {};
  const hasTls = ca.length > 0 || cert !== '';
  if (proxy === '' && !hasTls && family === undefined) return undefined;
  const own = cert === '' ? {} : { cert, key: secret(key), ...passphraseOf(passphrase) };
  return {
    name: hash('sha256', JSON.stringify([proxy, ca, cert, key, family]), 'base64url').slice(0, 16),
    ...(proxy === '' ? {} : { proxy: secret(proxy) }),
    ...(hasTls ? { secureContext: secureContextOf({ ca, ...own }) } : {}),
    ...(ca.length > 0 ? { ca } : {}),
    ...(family === undefined ? {} : { family }),
  };
}

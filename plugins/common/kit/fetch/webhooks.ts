/** Signs webhooks as https://www.standardwebhooks.com says: with each secret, so that receivers can change to the first one. */
import { Webhook } from 'standardwebhooks';
import { secretList } from '../../../../core/contract/schema.ts';

const prefix = 'whsec_';
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const [leastBytes, mostBytes] = [24, 64];
const leastLength = 16;

/** `whsec_` and base64, or any other text, which is the key as it is written. */
export const webhookSecrets = () =>
  secretList(leastLength)
    .refine((list) => list.every(isWellFormed), 'must be whsec_ and the base64 of 24 to 64 bytes, or another text')
    .refine((list) => !list.some((secret) => /^wh[sp]k_/.test(secret)), 'must be a secret of whsec_, not a key pair');

/** The headers of one attempt; `id` is the same for each attempt to send a message. */
export function signedHeaders(
  secrets: readonly string[],
  id: string,
  at: Date,
  body: string,
): Readonly<Record<string, string>> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': secrets.map((secret) => signer(secret).sign(id, at, body)).join(' '),
  };
}

function signer(secret: string): Webhook {
  return secret.startsWith(prefix) ? new Webhook(secret) : new Webhook(Buffer.from(secret), { format: 'raw' });
}

function isWellFormed(secret: string): boolean {
  if (!secret.startsWith(prefix)) return true;
  const text = secret.slice(prefix.length);
  const bytes = Buffer.from(text, 'base64').length;
  return base64.test(text) && bytes >= leastBytes && bytes <= mostBytes;
}

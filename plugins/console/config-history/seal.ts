/** Seals texts of configurations with the console's secrets (AES-256-GCM), so that rows and dumps show nothing of them. */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Random } from '../../../core/contract/host-tools.ts';
import type { Secrets } from '../people/secrets.ts';

const algorithm = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

const keyOf = (secret: string) => Buffer.from(hkdfSync('sha256', secret, '', 'kept configurations', 32));

/** With the first secret. `name` is bound to the text. */
export function sealText(text: string, name: string, [secret]: Secrets, random: Random): string {
  const iv = random.bytes(ivBytes);
  const cipher = createCipheriv(algorithm, keyOf(secret), iv).setAAD(Buffer.from(name));
  const body = Buffer.concat([cipher.update(gzipSync(text)), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64');
}

/** undefined: it was sealed with none of these secrets. */
export function openText(sealed: string, name: string, secrets: Secrets): string | undefined {
  const bytes = Buffer.from(sealed, 'base64');
  const body = bytes.subarray(ivBytes + tagBytes);
  for (const secret of secrets) {
    try {
      const decipher = createDecipheriv(algorithm, keyOf(secret), bytes.subarray(0, ivBytes))
        .setAAD(Buffer.from(name))
        .setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
      return gunzipSync(Buffer.concat([decipher.update(body), decipher.final()])).toString();
    } catch {
      // The next one.
    }
  }
  return undefined;
}

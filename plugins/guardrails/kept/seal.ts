/** Placeholders of a conversation that goes on by an id, as they are stored: encrypted, and bound to their account and answer. */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { tryParse } from '../../../core/json/json.ts';

const algorithm = 'aes-256-gcm';
export const nonceBytes = 12;
const tagBytes = 16;

export interface Sealing {
  /** 32 bytes. */
  readonly key: Buffer;
  /** What it belongs to. */
  readonly about: string;
}

export function sealed(texts: ReadonlyMap<string, string>, nonce: Buffer, { key, about }: Sealing): string {
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(about));
  const body = Buffer.concat([cipher.update(JSON.stringify([...texts]), 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64');
}

/** Empty: it was not sealed with this key for this use. */
export function unsealed(text: string, { key, about }: Sealing): ReadonlyMap<string, string> {
  const bytes = Buffer.from(text, 'base64');
  try {
    const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes)).setAAD(Buffer.from(about));
    decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
    const body = Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]);
    return new Map(tryParse(body.toString('utf8')) as [string, string][]);
  } catch {
    return new Map();
  }
}

/** Reads a file that holds one secret: bounded, text, without the line break at its end. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

const mostBytes = 64 * 2 ** 10;

/** The file's content, undefined: it is empty; or why it cannot be read, as the end of a sentence, and whether it is missing. */
export type SecretFile =
  | { readonly text: string | undefined }
  | { readonly problem: string; readonly isMissing: boolean };

export function readSecretFile(path: string): SecretFile {
  let descriptor: number;
  try {
    // A pipe that is read without a writer must not stop the process.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    const isMissing = code === 'ENOENT' || code === 'ENOTDIR';
    return { problem: isMissing ? 'there is no such file' : code, isMissing };
  }
  try {
    if (!fstatSync(descriptor).isFile()) return { problem: 'it is no file', isMissing: false };
    return textOf(bytesOf(descriptor));
  } catch (error) {
    return { problem: (error as NodeJS.ErrnoException).code ?? 'unknown error', isMissing: false };
  } finally {
    closeSync(descriptor);
  }
}

/** At most one byte more than a secret may have. */
function bytesOf(descriptor: number): Buffer {
  const bytes = Buffer.alloc(mostBytes + 1);
  let length = 0;
  while (length < bytes.length) {
    const read = readSync(descriptor, bytes, length, bytes.length - length, null);
    if (read === 0) break;
    length += read;
  }
  return bytes.subarray(0, length);
}

function textOf(bytes: Buffer): SecretFile {
  if (bytes.length > mostBytes) return { problem: 'it has more than 64 KB', isMissing: false };
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/[\r\n]+$/, '');
    if (text.includes('\0')) return { problem: 'it is no text', isMissing: false };
    return { text: text === '' ? undefined : text };
  } catch {
    return { problem: 'it is no text in UTF-8', isMissing: false };
  }
}

/** The file's content; undefined: it is empty or cannot be read. */
export function secretIn(path: string): string | undefined {
  const read = readSecretFile(path);
  return 'text' in read ? read.text : undefined;
}

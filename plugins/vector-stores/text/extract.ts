/** The text of a file by its bytes: plain text of any kind, and HTML without its tags. Pure. */
import { readHtml } from './html.ts';

/** The text; or why there is none, by the code of the official API. */
export type Extracted =
  | { readonly text: string }
  | { readonly code: 'unsupported_file' | 'invalid_file'; readonly message: string };

const unsupported = {
  code: 'unsupported_file',
  message: 'The file is no text: texts, Markdown, JSON, HTML, CSV and source code are read.',
} as const;
const empty = { code: 'invalid_file', message: 'There is no text in the file.' } as const;

export function extract(
  bytes: Uint8Array,
  { name, mediaType }: { readonly name: string; readonly mediaType: string },
): Extracted {
  const text = decoded(bytes);
  if (text === undefined || text.includes('\u0000') || /^%PDF-|^\{\\rtf/.test(text)) return unsupported;
  const isHtml =
    /\.x?html?$/i.test(name) || /^text\/html|^application\/xhtml/.test(mediaType) || /^\s*<!doctype html/i.test(text);
  const plain = (isHtml ? readHtml(text) : text).replaceAll('\r\n', '\n').trim();
  return plain === '' ? empty : { text: plain };
}

/** UTF-8, or UTF-16 that says so in its first two bytes; undefined: neither. */
function decoded(bytes: Uint8Array): string | undefined {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8';
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

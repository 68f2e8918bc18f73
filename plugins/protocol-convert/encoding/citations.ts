/** Conversion of text positions between UTF-8 bytes and UTF-16 units, and addresses of cited files. Pure. */
import { type JsonObject, textOf } from '../../../core/json/json.ts';
import type { Citation } from '../../common/canonical/prompt.ts';

const fileScheme = 'file:';

/** The address of a cited source, for protocols that cite addresses alone: a file has its name. undefined: the source has neither. */
export function citedUrl({ url, title, file }: Citation): string | undefined {
  const name = title ?? file?.id;
  return url ?? (name === undefined ? undefined : fileScheme + encodeURIComponent(name.toWellFormed()));
}

/** The source of an annotation of chat or responses: an address, a file, or a file in a container; undefined: it names none. */
export function citedSource(json: JsonObject): Pick<Citation, 'url' | 'title' | 'file'> | undefined {
  const url = textOf(json['url']);
  const title = textOf(json['title']) ?? textOf(json['filename']);
  const id = textOf(json['file_id']);
  const container = textOf(json['container_id']);
  if (url === undefined && title === undefined && id === undefined) return undefined;
  return {
    ...(url === undefined ? {} : { url }),
    ...(title === undefined ? {} : { title }),
    ...(id === undefined ? {} : { file: { id, ...(container === undefined ? {} : { container }) } }),
  };
}

/** Whether an address is one that `citedUrl` made. */
export function isFileUrl(url: string): boolean {
  return url.startsWith(fileScheme);
}

/** The UTF-16 offset of a UTF-8 byte offset; inside a character: the offset of its beginning. */
export function utf16Offset(text: string, byteOffset: number): number {
  let bytes = 0;
  let offset = 0;
  while (offset < text.length) {
    const code = text.codePointAt(offset)!;
    bytes += bytesOf(code);
    if (bytes > byteOffset) return offset;
    offset += code > 0xffff ? 2 : 1;
  }
  return offset;
}

/** The number of UTF-8 bytes before this UTF-16 offset; inside a surrogate pair: before the pair. */
export function byteOffset(text: string, utf16: number): number {
  let bytes = 0;
  for (let offset = 0; offset < text.length; ) {
    const code = text.codePointAt(offset)!;
    offset += code > 0xffff ? 2 : 1;
    if (offset > utf16) break;
    bytes += bytesOf(code);
  }
  return bytes;
}

function bytesOf(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** Multipart forms in excerpts: fields as they are, each file replaced by a description. Pure. */
import { createHash } from 'node:crypto';
import type { StreamedFormPart } from '../../common/kit/forms/streamed-form.ts';
import { blobMark, type Kept } from './excerpt.ts';

const boundaryPattern = /;\s*boundary="?([^";]{1,70})"?/i;
const headEnd = Buffer.from('\r\n\r\n');
/** https://www.rfc-editor.org/rfc/rfc7578; a longer part is treated as a file. */
const longestField = 16 * 1024;
const mostParts = 200;

/** `type`: the content type with its boundary. undefined: not a readable form. */
export function keptForm(body: Uint8Array, type: string, mostBytes: number): Kept | undefined {
  const boundary = boundaryPattern.exec(type)?.[1];
  if (boundary === undefined) return undefined;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const line = Buffer.from(`--${boundary}`);
  const parts: string[] = [];
  let start = bytes.indexOf(line);
  while (start !== -1 && parts.length < mostParts) {
    const end = bytes.indexOf(line, start + line.length);
    if (end === -1) break;
    parts.push(`--${boundary}${partText(bytes.subarray(start + line.length, end))}`);
    start = end;
  }
  if (parts.length === 0) return undefined;
  const text = `${parts.join('')}--${boundary}--`;
  return { text: text.slice(0, mostBytes), bytes: body.length, omittedBytes: Math.max(0, text.length - mostBytes) };
}

/** `part`: the bytes between two boundaries. */
function partText(part: Buffer): string {
  const end = part.indexOf(headEnd);
  if (end === -1) return part.subarray(0, longestField).toString('utf8');
  const head = part.toString('utf8', 0, Math.min(end, longestField));
  const content = part.subarray(end + headEnd.length);
  const isFile = /;\s*filename\*?=/i.test(head) || content.length > longestField;
  if (!isFile) return `${head}\r\n\r\n${content.toString('utf8')}`;
  const file = content.subarray(0, Math.max(0, content.length - 2));
  const type = /^content-type:\s*([\w.+/-]+)/im.exec(head)?.[1] ?? '';
  return `${head}\r\n\r\n${blobMark(type, file.length, createHash('sha256').update(file).digest('hex'))}\r\n`;
}

/** The same of a form that was read as it came. */
export function keptParts(parts: readonly StreamedFormPart[], mostBytes: number): Kept {
  const boundary = '----form';
  const texts = parts.map(({ name, filename, mediaType, bytes, sha256, text }) => {
    const file = filename === undefined ? '' : `; filename="${filename}"`;
    const content = text === undefined || bytes > longestField ? blobMark(mediaType ?? '', bytes, sha256) : text;
    return `${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`;
  });
  const text = `${texts.join('')}${boundary}--`;
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  return { text: text.slice(0, mostBytes), bytes, omittedBytes: Math.max(0, text.length - mostBytes) };
}

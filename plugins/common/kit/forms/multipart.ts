/** Multipart forms (RFC 7578): parsed from a client's body, and encoded for vendors. Pure. */
import { invalid } from '../../../../core/json/request-body.ts';
import { broken, parameterOf } from './form-stream.ts';

/** A parsed part of a form. */
export interface FormPart {
  readonly name: string;
  /** Set for files. */
  readonly filename: string | undefined;
  readonly bytes: Buffer;
}

/** A part of a form to send. */
export type FormMember =
  | { readonly name: string; readonly text: string }
  | { readonly name: string; readonly filename: string; readonly mediaType: string; readonly base64: string };

/** Far more than any endpoint has members. */
const mostParts = 100;
const mostHeadBytes = 4_096;
const lineEnd = Buffer.from('\r\n');
const headEnd = Buffer.from('\r\n\r\n');

/** The boundary in a content type; undefined: no body of this kind. */
export function boundaryIn(contentType: string | undefined, kind = 'form-data'): string | undefined {
  if (!new RegExp(`^\\s*multipart/${kind}\\s*;`, 'i').test(contentType ?? '')) return undefined;
  const match = /;\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType!);
  return match?.[1] ?? match?.[2];
}

/**
 * The parts in their order, each a view of `bytes`. Throws invalid_request for a malformed form, or one with too many
 * parts.
 */
export function readMultipart(bytes: Uint8Array, boundary: string): FormPart[] {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const mark = Buffer.from(`--${boundary}`);
  const between = Buffer.concat([lineEnd, mark]);
  // The preamble before the first boundary is ignored.
  const first = body.subarray(0, mark.length).equals(mark) ? 0 : after(body.indexOf(between), lineEnd.length);
  const parts: FormPart[] = [];
  for (let at = first + mark.length; !startsWith(body, at, '--'); ) {
    if (parts.length === mostParts) throw invalid(`The form has more than ${mostParts} parts.`);
    const start = skipLineBreak(body, at);
    const end = body.indexOf(between, start);
    if (end === -1) throw broken();
    parts.push(partOf(body.subarray(start, end)));
    at = end + between.length;
  }
  return parts;
}

function after(found: number, length: number): number {
  if (found === -1) throw broken();
  return found + length;
}

function startsWith(body: Buffer, at: number, text: string): boolean {
  return body.toString('latin1', at, at + text.length) === text;
}

/** White space may follow a boundary before the line break. */
function skipLineBreak(body: Buffer, from: number): number {
  let at = from;
  while (body[at] === 0x20 || body[at] === 0x09) at += 1;
  if (!startsWith(body, at, '\r\n')) throw broken();
  return at + lineEnd.length;
}

function partOf(part: Buffer): FormPart {
  const end = part.subarray(0, mostHeadBytes).indexOf(headEnd);
  if (end === -1) throw broken();
  const head = part.toString('utf8', 0, end);
  const disposition = /^content-disposition:\s*form-data\s*;(.*)$/im.exec(head)?.[1];
  const name = disposition === undefined ? undefined : parameterOf(disposition, 'name');
  if (name === undefined) throw broken();
  return { name, filename: parameterOf(disposition!, 'filename'), bytes: part.subarray(end + headEnd.length) };
}

/**
 * `boundary` must not occur in any member: 128 random bits do not. Names and types are the gateway's own, without
 * quotes.
 */
export function writeMultipart(members: readonly FormMember[], boundary: string): Buffer {
  const pieces: Buffer[] = [];
  for (const member of members) {
    const file = 'text' in member ? '' : `; filename="${member.filename}"\r\ncontent-type: ${member.mediaType}`;
    pieces.push(Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${member.name}"${file}\r\n\r\n`));
    pieces.push('text' in member ? Buffer.from(member.text) : Buffer.from(member.base64, 'base64'), lineEnd);
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`));
  return Buffer.concat(pieces);
}

/** HTTP answers for stored files: head, ranges, conditions. Pure. RFC 9110, sections 13 and 14. */
import type { ClientRequest, Headers } from '../../core/contract/message.ts';
import type { KeptFile } from '../common/domain/stored-files.ts';
import { extensionOf } from '../common/kit/media-types.ts';
import { type Span, svgType } from './bytes.ts';

/** Without a span there is no body. */
export interface Serving {
  readonly status: 200 | 206 | 304 | 416;
  readonly headers: Headers;
  readonly span?: Span;
}

/** `until`: wall-clock milliseconds until which the client may cache the answer privately. */
export function servingOf(
  file: KeptFile,
  request: Pick<ClientRequest, 'headers'>,
  until: number,
  now: number,
): Serving {
  const { headers: requestHeaders } = request;
  const tag = `"${file.id}"`;
  const headers = headersOf(file, tag, until, now);
  if (isKnown(requestHeaders['if-none-match'], tag)) return { status: 304, headers };
  const whole: Span = { first: 0, last: file.bytes - 1 };
  const range =
    requestHeaders['if-range'] === undefined || requestHeaders['if-range'] === tag
      ? requestHeaders['range']
      : undefined;
  const span = range === undefined ? whole : spanOf(range, file.bytes);
  if (span === undefined) {
    return { status: 416, headers: { 'content-range': `bytes */${file.bytes}`, 'cache-control': 'no-store' } };
  }
  if (span === 'whole' || span === whole) {
    return { status: 200, headers: { ...headers, 'content-type': file.mediaType }, span: whole };
  }
  return {
    status: 206,
    headers: {
      ...headers,
      'content-type': file.mediaType,
      'content-range': `bytes ${span.first}-${span.last}/${file.bytes}`,
    },
    span,
  };
}

export function dispositionOf({ id, mediaType }: KeptFile): string {
  // A page of its own would run what an SVG holds.
  const how = mediaType === svgType ? 'attachment' : 'inline';
  return `${how}; filename="${id}.${extensionOf(mediaType)}"`;
}

const policy = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'";

function headersOf(file: KeptFile, tag: string, until: number, now: number): Headers {
  const seconds = Math.max(0, Math.floor((Math.min(until, file.expiresAt) - now) / 1000));
  return {
    'accept-ranges': 'bytes',
    etag: tag,
    // The bytes of an id never change; the address is private to its reader.
    'cache-control': `private, max-age=${seconds}, immutable`,
    // Else a picture that a page has shown could not be read by its script: the kept answer names no allowed origin.
    vary: 'origin',
    'content-disposition': dispositionOf(file),
    // Content type as sniffed; browsers show the file but run nothing in it.
    'x-content-type-options': 'nosniff',
    'content-security-policy': file.mediaType === svgType ? `${policy}; sandbox` : policy,
    'cross-origin-resource-policy': 'cross-origin',
    'referrer-policy': 'no-referrer',
  };
}

function isKnown(condition: string | undefined, tag: string): boolean {
  if (condition === undefined) return false;
  return condition.split(',', 100).some((entry) => entry.trim() === '*' || entry.trim().replace(/^W\//, '') === tag);
}

/** One range of bytes; `whole` if the header is ignored (several ranges, other units); undefined: not satisfiable. */
function spanOf(range: string, bytes: number): Span | 'whole' | undefined {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(range);
  if (match === null) return 'whole';
  const [, from = '', to = ''] = match;
  if (from === '') {
    if (to === '') return 'whole';
    const length = Math.min(Number(to), bytes);
    return length === 0 ? undefined : { first: bytes - length, last: bytes - 1 };
  }
  const first = Number(from);
  if (to !== '' && Number(to) < first) return 'whole';
  if (first >= bytes) return undefined;
  return { first, last: to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1) };
}

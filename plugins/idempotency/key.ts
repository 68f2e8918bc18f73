/** The identity of a request: its account, its Idempotency-Key, and everything that determines the answer. Pure. */
import { createHash, hash } from 'node:crypto';
import type { Exchange } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { ClientRequest } from '../../core/contract/message.ts';
import { caller } from '../common/domain/accounts.ts';
import { type StreamedFormPart, streamedForm } from '../common/kit/forms/streamed-form.ts';

/** Official SDKs that generate keys send `stainless-<language>-retry-<uuid>`; any name within bounds is accepted. */
const legalKey = /^[\x21-\x7e][\x20-\x7e]{0,254}$/;

/** A request with a key. Hashes are SHA-256 in hex: clients may put private data into keys. */
export interface KeyedCall {
  readonly accountId: string;
  readonly keyHash: string;
  readonly fingerprint: string;
  /** The exchange's id. */
  readonly requestId: string;
  /** Fields of log lines about it. */
  readonly logFields?: Readonly<Record<string, string>>;
}

/**
 * Undefined: it has no key. Throws `invalid_request` for a key that is empty, too long or not printable.
 */
export function readKey(exchange: Exchange): KeyedCall | undefined {
  const { id: requestId, request } = exchange;
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (!legalKey.test(key)) {
    throw new GatewayError('invalid_request', 'An Idempotency-Key has 1 to 255 printable ASCII characters.', {
      field: 'idempotency-key',
      shouldRetry: false,
    });
  }
  const { accountId } = exchange.get(caller);
  const fingerprint = fingerprintOf(request, exchange.find(streamedForm));
  return { accountId, keyHash: hash('sha256', key), fingerprint, requestId, logFields: exchange.log.fields() };
}

/** The query determines the form of streams; an API key in it has no influence. */
function fingerprintOf(request: ClientRequest, parts: readonly StreamedFormPart[] | undefined): string {
  const { path, query } = request;
  const form = [...query].filter(([name]) => name !== 'key').sort(byName);
  return createHash('sha256')
    .update(JSON.stringify([path, form]))
    .update('\n')
    .update(parts === undefined ? contentOf(request) : JSON.stringify(parts.map(identityOf)))
    .digest('hex');
}

const identityOf = ({ name, filename, mediaType, sha256 }: StreamedFormPart) => [name, filename, mediaType, sha256];

/** A form without its boundary: clients generate a new one each time they send the same form. */
function contentOf({ headers, body }: ClientRequest): Uint8Array {
  const boundary = /^multipart\/[^;]+;.*?boundary="?([^";]{1,70})"?/i.exec(headers['content-type'] ?? '')?.[1];
  if (boundary === undefined) return body;
  return Buffer.from(Buffer.from(body).toString('latin1').replaceAll(boundary, ''), 'latin1');
}

function byName([one]: [string, string], [other]: [string, string]): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

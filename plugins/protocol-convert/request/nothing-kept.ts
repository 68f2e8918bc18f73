/** Requests of accounts of which nothing may be kept: without what asks for storage, which is refused by the name of its field. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { applyEdits, editsFor, findMember, scanObject } from '../../../core/json/splice.ts';
import type { BuiltOn, Protocol, RequestBody } from '../../common/wire/protocols.ts';

/** What is kept here or at a vendor where they say so, or was kept before. */
const references = ['previous_response_id', 'conversation', 'thread', 'cachedContent', 'cached_content'];

/**
 * The body as it goes on. Where the protocol keeps answers unless the request says that they are not, it says so. Throws
 * invalid_request.
 */
export function withNothingKept(body: RequestBody, { inputItems }: Protocol, operation: string): RequestBody {
  const { json, bytes, scan } = body;
  for (const field of ['store', 'background']) if (json[field] === true) throw notKept(field);
  for (const field of references) if (json[field] !== undefined && json[field] !== null) throw notKept(field);
  if (inputItems === undefined || operation !== 'responses' || json['store'] === false) return body;
  const place = findMember(scan, 'store') === undefined ? 'insert' : 'replace';
  const edited = applyEdits(bytes, editsFor(scan, { [place]: { store: 'false' } }));
  return { bytes: edited, json: { ...json, store: false }, scan: scanObject(edited) };
}

/** What was kept before is not read for its calls any more. */
export function refuseItems({ itemIds }: BuiltOn): void {
  if (itemIds.length > 0) throw notKept('input');
}

function notKept(field: string): GatewayError {
  const message = `Nothing of the calls of this account is kept (retention "none"), so "${field}" cannot be used as it is.`;
  return new GatewayError('invalid_request', message, { field, code: 'retention_none', shouldRetry: false });
}

/** Requests that continue a conversation in the vendor's store: `thread` of the messages protocol. Pure. */
import { GatewayError } from '../../../../../core/contract/errors.ts';
import { type JsonObject, objectOf } from '../../../../../core/json/json.ts';

/** Code of the error on which official clients send the whole conversation without `thread`. */
const unsupportedThread = 'thread_unsupported_request';

/** Whether the request continues messages that it does not contain. */
export function continuesThread(json: JsonObject): boolean {
  const thread = json['thread'] ?? undefined;
  return thread !== undefined && objectOf(thread)?.['type'] !== 'create';
}

/**
 * Throws invalid_request for a request with a `thread` that would not reach a vendor with stored threads. The model would see
 * only the newest message, and the answer would look like a success.
 */
export function refuseThread(json: JsonObject, isStored: boolean): void {
  if (isStored || (json['thread'] ?? undefined) === undefined) return;
  throw new GatewayError(
    'invalid_request',
    'The field "thread" is not supported: no conversation is stored for this model. Send all messages without "thread".',
    { field: 'thread', code: unsupportedThread },
  );
}

/** Messages to a client: events of the HTTP stream, and errors in their envelope. Pure. */
import { randomBytes } from 'node:crypto';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Headers } from '../../../core/contract/message.ts';
import { isObject, listOf, objectOf, textOf, tryParse, tryParseBytes } from '../../../core/json/json.ts';
import type { ShapeMembers } from '../../common/domain/error-shape.ts';
import { envelope } from '../../common/kit/error-envelope.ts';

const keptHeaders = ['retry-after', 'x-should-retry', 'x-request-id'] as const;

/** An error answer over HTTP as an event. */
export function errorMessage(status: number, headers: Readonly<Headers>, body: Uint8Array): string {
  const json = objectOf(tryParseBytes(body)) ?? {};
  const error = objectOf(json['error']) ?? (Object.keys(json).length > 0 ? json : { message: 'The request failed.' });
  const kept = keptHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const]));
  return JSON.stringify({ type: 'error', status, error, headers: Object.fromEntries(kept) });
}

/** `shape`: the members of the gateway's own error bodies, where it has its own. */
export function errorOf(error: GatewayError, shape?: ShapeMembers): string {
  return JSON.stringify({ type: 'error', status: error.status, error: shape ?? envelope(error).error });
}

/** An `error` event of a stream, which has its members flat, in the envelope of this transport. */
export function streamErrorMessage(data: string, status: number): string {
  const event = objectOf(tryParse(data)) ?? {};
  const { type: _type, sequence_number, error, ...flat } = event;
  const number = typeof sequence_number === 'number' ? { sequence_number } : {};
  return JSON.stringify({ type: 'error', status, error: isObject(error) ? error : flat, ...number });
}

/** How an answer ended that may be continued. */
export interface Ending {
  readonly id: string;
  /** The items of the answer as JSON texts with commas between them. */
  readonly items: Buffer;
}

/** Reads `response.completed` and `response.incomplete`. */
export function endingOf(data: string): Ending | undefined {
  const response = objectOf(objectOf(tryParse(data))?.['response']);
  const id = textOf(response?.['id']);
  if (response === undefined || id === undefined) return undefined;
  const items = listOf(response['output'])
    .filter(canBeSentAgain)
    .map((item) => JSON.stringify(item));
  return { id, items: Buffer.from(items.join(',')) };
}

/** Reasoning that nothing has stored can only be read from its encrypted content. */
function canBeSentAgain(item: unknown): boolean {
  return isObject(item) && (item['type'] !== 'reasoning' || textOf(item['encrypted_content']) !== undefined);
}

/** The answer to a turn that generates nothing. */
export function warmUpMessages(
  model: unknown,
  previousId: string | undefined,
  nowMs: number,
): { id: string; messages: string[] } {
  const id = `resp_${randomBytes(24).toString('hex')}`;
  const response = (status: string) => ({
    id,
    object: 'response',
    created_at: Math.floor(nowMs / 1000),
    status,
    error: null,
    incomplete_details: null,
    model,
    output: [],
    previous_response_id: previousId ?? null,
    usage: status === 'completed' ? noUsage : null,
  });
  const messages = [
    { type: 'response.created', sequence_number: 0, response: response('in_progress') },
    { type: 'response.completed', sequence_number: 1, response: response('completed') },
  ];
  return { id, messages: messages.map((message) => JSON.stringify(message)) };
}

const noUsage = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
};

/** With the lane that the client has named. */
export function inLane(message: string, streamId: string | undefined): string {
  return streamId === undefined ? message : `{"stream_id":${JSON.stringify(streamId)},${message.slice(1)}`;
}

const unnamed = /"previous_response_id"\s*:\s*null/;

/** Names the response that was continued, where the upstream was sent the whole conversation. */
export function naming(message: string, previousId: string): string {
  return message.replace(unnamed, () => `"previous_response_id":${JSON.stringify(previousId)}`);
}

export function notFound(id: string): GatewayError {
  return new GatewayError('invalid_request', `Previous response with id '${id.slice(0, 200)}' not found.`, {
    field: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}

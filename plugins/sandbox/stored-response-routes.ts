/** Routes of stored responses: get, delete, and list input items. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { badRequest, Fault } from './fault.ts';
import { isObject, type JsonObject, textOf } from './json.ts';
import type { Turn } from './protocol.ts';
import { bearerKey, chatFault, chatHeaders } from './protocols/chat-faults.ts';
import { wholeResponse } from './protocols/responses.ts';
import { itemsOf } from './stored-responses.ts';
import { sendJson, type Vendor } from './vendor-state.ts';

/** The requested operation on a stored response. */
export interface StoredResponseRoute {
  readonly kind: 'stored-response';
  readonly id: string;
  readonly action: 'get' | 'delete' | 'input';
}

const storedResponsePath = /^(GET|DELETE) (?:\/v1)?\/responses\/([\w-]{1,100})(\/input_items)?$/;

/** undefined: not the path of a stored response. */
export function storedResponseRouteOf(method: string, path: string): StoredResponseRoute | undefined {
  const match = storedResponsePath.exec(`${method} ${path}`);
  if (match === null || (match[1] === 'DELETE' && match[3] !== undefined)) return undefined;
  const action = match[1] === 'DELETE' ? 'delete' : match[3] === undefined ? 'get' : 'input';
  return { kind: 'stored-response', id: match[2]!, action };
}

/** Never throws: faults are answered in the protocol's own error form. */
export function serveStoredResponse(
  vendor: Vendor,
  { id, action }: StoredResponseRoute,
  query: URLSearchParams,
  { headers }: IncomingMessage,
  answer: ServerResponse,
): void {
  const answerHeaders = chatHeaders(vendor.nextId());
  try {
    if (vendor.key !== undefined && bearerKey(headers.authorization) !== vendor.key)
      throw new Fault(401, 'The sandbox does not know this API key.');
    const turn = vendor.responses.find(id);
    if (turn === undefined) throw new Fault(404, `Response with id '${id}' not found.`, { code: 'response_not_found' });
    if (action === 'delete') vendor.responses.delete(id);
    sendJson(answer, 200, answerHeaders, bodyFor(action, id, turn, query));
  } catch (error) {
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    sendJson(answer, fault.status, answerHeaders, chatFault({ fault }).body);
  }
}

function bodyFor(action: StoredResponseRoute['action'], id: string, turn: Turn, query: URLSearchParams): string {
  if (action === 'get') return wholeResponse(turn);
  const body = action === 'delete' ? { id, object: 'response', deleted: true } : inputPage(turn, query);
  return `${JSON.stringify(body, null, 2)}\n`;
}

/** Newest first unless `order=asc`; 20 or `limit` items after `after`. */
function inputPage(turn: Turn, query: URLSearchParams): object {
  const items = itemsOf(turn.body['input']).map((value, index) => {
    const item = isObject(value) ? value : { content: value };
    return { id: `msg_${turn.id}in${index}`, type: 'message', status: 'completed', ...item } as JsonObject;
  });
  if (query.get('order') !== 'asc') items.reverse();
  const limit = Number(query.get('limit') ?? 20);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100) throw badRequest("Invalid 'limit'.", 'limit');
  const after = query.get('after');
  const start = after === null ? 0 : items.findIndex((item) => item['id'] === after) + 1;
  const data = items.slice(start, start + limit);
  const [first, last] = [data[0], data.at(-1)].map((item) => textOf(item?.['id']) ?? null);
  return { object: 'list', data, first_id: first, last_id: last, has_more: start + limit < items.length };
}

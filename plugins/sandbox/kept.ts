/** Responses that clients come back to by id: continued, told, their input listed, deleted. Of very many, the newest are kept. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { bearerKey, chatFault, chatHeaders } from './chat-faults.ts';
import { badRequest, Fault } from './fault.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from './json.ts';
import type { Turn } from './protocol.ts';
import { wholeResponse } from './responses.ts';
import { sendJson, type Vendor } from './run.ts';

interface Kept {
  readonly turn: Turn;
  /** Of its request, for the bound. */
  readonly bytes: number;
}

const mostKept = 1_000;
const mostBytes = 16 * 2 ** 20;

export class KeptResponses {
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  /** Keeps what has ended well, unless its client wants it forgotten. */
  keep(turn: Turn, bytes: number): void {
    if (turn.call.protocol !== 'responses' || turn.call.operation !== 'answer' || turn.body['store'] === false) return;
    this.#kept.set(`resp_${turn.id}`, { turn, bytes });
    this.#bytes += bytes;
    for (const id of this.#kept.keys()) {
      if (this.#kept.size <= mostKept && this.#bytes <= mostBytes) break;
      this.delete(id);
    }
  }

  find(id: string): Turn | undefined {
    return this.#kept.get(id)?.turn;
  }

  delete(id: string): void {
    this.#bytes -= this.#kept.get(id)?.bytes ?? 0;
    this.#kept.delete(id);
  }

  /** The request with the conversation that it goes on with written out; as it is where it names none that is kept. */
  continued(body: JsonObject): JsonObject {
    const { previous_response_id: id, ...rest } = body;
    const turn = typeof id === 'string' ? this.find(id) : undefined;
    if (turn === undefined) return body;
    const said = listOf(objectOf(JSON.parse(wholeResponse(turn)))['output']);
    const input = [...itemsOf(turn.body['input']), ...said, ...itemsOf(body['input'])];
    return { ...rest, input, continued_response_id: id };
  }
}

function itemsOf(input: unknown): readonly unknown[] {
  return typeof input === 'string' ? [{ role: 'user', content: [{ type: 'input_text', text: input }] }] : listOf(input);
}

/** What is asked of a kept response. */
export interface KeptRoute {
  readonly kind: 'kept';
  readonly id: string;
  readonly ask: 'tell' | 'delete' | 'input';
}

const keptPath = /^(GET|DELETE) (?:\/v1)?\/responses\/([\w-]{1,100})(\/input_items)?$/;

/** undefined: it is no address of a kept response. */
export function keptRouteOf(method: string, path: string): KeptRoute | undefined {
  const match = keptPath.exec(`${method} ${path}`);
  if (match === null || (match[1] === 'DELETE' && match[3] !== undefined)) return undefined;
  const ask = match[1] === 'DELETE' ? 'delete' : match[3] === undefined ? 'tell' : 'input';
  return { kind: 'kept', id: match[2]!, ask };
}

/** Never throws: faults are answered in the protocol's own words. */
export function serveKept(
  vendor: Vendor,
  { id, ask }: KeptRoute,
  query: URLSearchParams,
  { headers }: IncomingMessage,
  answer: ServerResponse,
): void {
  const told = chatHeaders(vendor.nextId());
  try {
    if (vendor.key !== undefined && bearerKey(headers.authorization) !== vendor.key)
      throw new Fault(401, 'The sandbox does not know this API key.');
    const turn = vendor.kept.find(id);
    if (turn === undefined) throw new Fault(404, `Response with id '${id}' not found.`, { code: 'response_not_found' });
    if (ask === 'delete') vendor.kept.delete(id);
    sendJson(answer, 200, told, bodyFor(ask, id, turn, query));
  } catch (error) {
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    sendJson(answer, fault.status, told, chatFault({ fault }).body);
  }
}

function bodyFor(ask: KeptRoute['ask'], id: string, turn: Turn, query: URLSearchParams): string {
  if (ask === 'tell') return wholeResponse(turn);
  const body = ask === 'delete' ? { id, object: 'response', deleted: true } : inputPage(turn, query);
  return `${JSON.stringify(body, null, 2)}\n`;
}

/** Newest first unless `order=asc`, 20 or `limit` of them behind `after`. */
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

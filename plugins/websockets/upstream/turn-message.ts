/** A turn as a message to an upstream: the whole conversation, or only its new items. Pure. */
import { createHash, type Hash } from 'node:crypto';
import { asBuffer } from '../../../core/json/json.ts';
import { applyEdits, editsFor, findMember, scanObject } from '../../../core/json/splice.ts';
import { endingOf } from '../responses/events.ts';
import { itemsOf } from '../responses/turn.ts';

/** The conversation that a connection has, up to the end of its last response. */
export interface KnownConversation {
  /** Id of its last response. */
  readonly id: string;
  /** Digest of its items as JSON texts with commas between them. */
  readonly digest: string;
  readonly bytes: number;
}

export interface TurnMessage {
  readonly data: Buffer;
  readonly isContinuation: boolean;
  /** The conversation of the connection after `response.completed` or `.incomplete`; undefined: unknown. */
  knownAfter(data: string): KnownConversation | undefined;
}

const transport = ['stream', 'stream_options'];

/**
 * Makes a message of the body of a POST. A conversation that begins with all that the connection has is continued there, so that
 * only the rest is sent; both are compared by digest, byte for byte. Throws for a body that is no JSON object.
 */
export function turnMessage(body: Uint8Array, known: KnownConversation | undefined): TurnMessage {
  const bytes = asBuffer(body);
  const scan = scanObject(bytes);
  const isContinued = findMember(scan, 'previous_response_id') ?? findMember(scan, 'conversation');
  const items = isContinued === undefined ? itemsOf({ bytes, scan }) : undefined;
  const rest = items === undefined || known === undefined ? undefined : restOf(items, known);
  const insert = { type: '"response.create"' };
  const continuation =
    rest === undefined
      ? insert
      : { ...insert, previous_response_id: JSON.stringify(known!.id), input: `[${rest.toString('utf8')}]` };
  const remove = new Set(rest === undefined ? transport : [...transport, 'input']);
  const hash = items === undefined ? undefined : createHash('sha256').update(items);
  const length = items?.length ?? 0;
  return {
    data: asBuffer(applyEdits(bytes, editsFor(scan, { remove, insert: continuation }))),
    isContinuation: rest !== undefined,
    knownAfter: (data) => (hash === undefined ? undefined : extended(hash, length, data)),
  };
}

/** The items after the known ones; undefined: it is another conversation. */
function restOf(items: Buffer, { digest, bytes }: KnownConversation): Buffer | undefined {
  if (items.length < bytes || (items.length > bytes && items[bytes] !== comma)) return undefined;
  if (createHash('sha256').update(items.subarray(0, bytes)).digest('base64') !== digest) return undefined;
  return items.subarray(bytes + 1);
}

const comma = 0x2c;

function extended(hash: Hash, length: number, data: string): KnownConversation | undefined {
  const ending = endingOf(data);
  if (ending === undefined) return undefined;
  const { id, items } = ending;
  const joint = length > 0 && items.length > 0 ? ',' : '';
  return {
    id,
    digest: hash.copy().update(joint).update(items).digest('base64'),
    bytes: length + joint.length + items.length,
  };
}

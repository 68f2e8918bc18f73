/** A `response.create` message: its members, and the body of the equivalent POST. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { applyEdits, editsFor, findMember, type ObjectScan, scanObject } from '../../../core/json/splice.ts';

export interface Turn {
  readonly bytes: Buffer;
  readonly scan: ObjectScan;
  /** false: nothing is generated; the input is kept for what follows. */
  readonly generate: boolean;
  readonly stored: boolean;
  readonly model: unknown;
  readonly previousId: string | undefined;
  /** The turn is part of a conversation that is kept elsewhere. */
  readonly inConversation: boolean;
  /** Lane of the turn, for clients that name lanes; comes back in every event. */
  readonly streamId: string | undefined;
}

const refuse = (message: string, field: string) => new GatewayError('invalid_request', message, { field });
/** Members that belong to the message, or that the transport sets itself. */
const ofTransport = ['type', 'generate', 'stream_id', 'stream', 'stream_options', 'background'];

/** Throws a GatewayError for anything else than a turn. */
export function readTurn(bytes: Buffer): Turn {
  const scan = scanned(bytes);
  const value = (name: string) => plainMember(bytes, scan, name);
  const type = value('type');
  if (type !== 'response.create')
    throw refuse(`Messages of type ${shown(type)} are not supported; send response.create.`, 'type');
  // Coding clients send `stream: true`, which is the default here.
  for (const name of ['stream', 'stream_options', 'background'])
    if (value(name) != null && !(name === 'stream' && value(name) === true))
      throw refuse(`The field "${name}" does not exist over WebSocket: every answer is streamed.`, name);
  const generate = value('generate') ?? true;
  if (typeof generate !== 'boolean') throw refuse('The field "generate" must be a boolean.', 'generate');
  const previousId = value('previous_response_id') ?? undefined;
  if (previousId !== undefined && typeof previousId !== 'string')
    throw refuse('The field "previous_response_id" must be a string.', 'previous_response_id');
  const inConversation = value('conversation') != null;
  checkConversation(inConversation, previousId, generate);
  const streamId = value('stream_id') ?? undefined;
  if (streamId !== undefined && (typeof streamId !== 'string' || streamId.length > 200))
    throw refuse('The field "stream_id" must be a string of at most 200 characters.', 'stream_id');
  const [stored, model] = [value('store') !== false, value('model')];
  return { bytes, scan, generate, stored, model, previousId, inConversation, streamId };
}

function checkConversation(inConversation: boolean, previousId: string | undefined, generate: boolean): void {
  if (!inConversation) return;
  if (!generate) throw refuse('A turn that generates nothing cannot be part of a conversation.', 'conversation');
  if (previousId === undefined) return;
  const message = 'Only one of the fields "previous_response_id" and "conversation" may be there.';
  const code = 'mutually_exclusive_parameters';
  throw new GatewayError('invalid_request', message, { field: 'conversation', code });
}

function scanned(bytes: Buffer): ObjectScan {
  try {
    const scan = scanObject(bytes);
    if (bytes.subarray(scan.end).toString('latin1').trim() === '') return scan;
  } catch {
    // Said below.
  }
  throw new GatewayError('invalid_request', 'A message must be one JSON object.');
}

/** A member that is no list and no object; of these, only that they are there. */
function plainMember(bytes: Buffer, scan: ObjectScan, name: string): unknown {
  const member = findMember(scan, name);
  if (member === undefined) return undefined;
  const first = bytes[member.valueStart];
  if (first === openBrace || first === openBracket) return {};
  try {
    return JSON.parse(bytes.toString('utf8', member.valueStart, member.end));
  } catch {
    throw refuse(`The field "${name}" is not valid JSON.`, name);
  }
}

const openBrace = 0x7b;
const openBracket = 0x5b;

/** The input's items as JSON texts with commas between them; undefined: it has none that can be continued. */
export function itemsOf({ bytes, scan }: Pick<Turn, 'bytes' | 'scan'>): Buffer | undefined {
  const member = findMember(scan, 'input');
  if (member === undefined) return Buffer.alloc(0);
  const value = bytes.subarray(member.valueStart, member.end);
  if (value[0] === openBracket) return trimmed(value.subarray(1, -1));
  if (value[0] !== 0x22) return value.equals(nothing) ? Buffer.alloc(0) : undefined;
  return Buffer.concat([Buffer.from('{"type":"message","role":"user","content":'), value, Buffer.from('}')]);
}

const nothing = Buffer.from('null');

function trimmed(bytes: Buffer): Buffer {
  let [start, end] = [0, bytes.length];
  while (start < end && bytes[start]! <= 0x20) start += 1;
  while (end > start && bytes[end - 1]! <= 0x20) end -= 1;
  return bytes.subarray(start, end);
}

export function joinItems(parts: readonly Buffer[]): Buffer {
  const filled = parts.filter(({ length }) => length > 0);
  return Buffer.concat(filled.flatMap((part, index) => (index === 0 ? [part] : [comma, part])));
}

const comma = Buffer.from(',');

/** The POST's body. `items`: the whole conversation, if the connection has the response to continue. */
export function bodyOf({ bytes, scan }: Turn, items: Buffer | undefined): Uint8Array {
  const remove = new Set(ofTransport);
  if (items === undefined) return applyEdits(bytes, editsFor(scan, { remove, insert: { stream: 'true' } }));
  for (const name of ['previous_response_id', 'input']) remove.add(name);
  const input = `[${items.toString('utf8')}]`;
  return applyEdits(bytes, editsFor(scan, { remove, insert: { input, stream: 'true' } }));
}

function shown(type: unknown): string {
  return typeof type === 'string' ? `"${type.slice(0, 100)}"` : 'without a name';
}

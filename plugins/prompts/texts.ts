/** The texts of a request in JSON, by the names of members that the protocols of clients have. What no name explains is a text too. Pure. */
import { applyEdits } from '../../core/json/splice.ts';
import type { PromptText, PromptTexts } from '../common/wire/prompt-rules.ts';
import { type Enclosing, type FoundString, scanStrings, stringAt } from './scan.ts';

const names = (list: string) => new Set(list.split(' '));

/** What a member holds, by its name. Data: each string in it is a text, whatever its name. */
type Meaning =
  | 'content'
  | 'reasoning'
  | 'system'
  | 'description'
  | 'call'
  | 'call data'
  | 'result'
  | 'result data'
  | 'data';
const meanings = new Map<string, Meaning>(
  (
    [
      [
        'content',
        'messages contents content turns parts part input prompt text texts query queries documents document question questions item items suffix',
      ],
      ['reasoning', 'reasoning reasoning_content reasoning_details reasoning_text thinking thinking_blocks summary'],
      ['system', 'system systemInstruction system_instruction instructions'],
      [
        'description',
        'tools tool_choice toolConfig tool_config functions functionDeclarations function_declarations response_format responseSchema ' +
          'response_schema responseJsonSchema response_json_schema output_format output_config format schema json_schema text_format',
      ],
      ['call', 'tool_calls function_call functionCall'],
      ['call data', 'arguments args partial_args'],
      ['result', 'functionResponse function_response functionResponses function_responses'],
      ['result data', 'response'],
      ['data', 'metadata labels'],
    ] as const
  ).flatMap(([meaning, members]) => members.split(' ').map((name) => [name, meaning] as const)),
);

/** Names of things, states and opaque values: never texts, unless they stand in data of a call. */
const opaque = names(
  'type role model id object status phase detail effort event_id call_id tool_call_id tool_use_id item_id previous_item_id response_id ' +
    'previous_response_id conversation_id signature thoughtSignature thought_signature encrypted_content mimeType mime_type media_type ' +
    'ttl mode voice modality modalities responseModalities response_modalities cachedContent cached_content cached cache_control',
);
/** Bytes, or names of what holds them. A text where the source's type says so. */
const media = names(
  'data b64_json bytes bytesBase64Encoded bytes_base64_encoded image_bytes imageBytes videoBytes file_data fileData file_id fileId file_ids ' +
    'fileUri file_uri url uri image images image_url video_url audio audio_url mask frames',
);
const roles = new Map<string, PromptText['role']>([
  ...['system', 'developer'].map((name) => [name, 'system'] as const),
  ...['assistant', 'model'].map((name) => [name, 'assistant'] as const),
  ...['tool', 'function'].map((name) => [name, 'tool'] as const),
  ['user', 'user'],
]);
const callType = /_use$|_call$/;
const resultType = /_output$|_result$|_result_block$/;
/** Each element is a message of its own, or the value is one. */
const turnLists = names('messages input contents requests turns item items documents texts');

interface Sense {
  role: PromptText['role'];
  kind: PromptText['kind'];
  turn: number;
  /** Every string below is a text. */
  isData: boolean;
}

/** What stands in an object or a list, by the way from the root to it. */
class Senses {
  readonly #known = new Map<Enclosing, Sense>();

  of(node: Enclosing): Sense {
    const known = this.#known.get(node);
    if (known !== undefined) return known;
    const { parent, key } = node;
    const above: Sense =
      parent === undefined ? { role: 'user', kind: 'other', turn: 0, isData: false } : this.at(parent, key!);
    const sense = { ...above };
    if (!sense.isData) describe(sense, node);
    this.#known.set(node, sense);
    return sense;
  }

  /** The sense of the value of a member or an element. */
  at(node: Enclosing, key: string | number): Sense {
    const sense = { ...this.of(node) };
    if (sense.isData) return sense;
    if (typeof key === 'string') named(sense, key, node);
    else if (turnLists.has(String(node.key)) && isShallow(node)) sense.turn = key + 1;
    return sense;
  }
}

/** A member of the request, or of one of its members, as messages of sessions have them. */
function isShallow({ parent }: Enclosing): boolean {
  return parent?.parent?.parent === undefined;
}

/** By the members `role` and `type` of an object. */
function describe(sense: Sense, { role, type }: Enclosing): void {
  // The role that an instruction names means nothing.
  if (sense.role !== 'system') sense.role = roles.get(role ?? '') ?? sense.role;
  if (sense.role === 'tool' || resultType.test(type ?? '')) [sense.role, sense.kind] = ['tool', 'result'];
  else if (callType.test(type ?? '') && sense.kind !== 'description') [sense.role, sense.kind] = ['assistant', 'call'];
  else if (type === 'reasoning' || type === 'thinking') sense.kind = 'reasoning';
}

type Change = (sense: Sense) => Partial<Sense>;

const effects: Readonly<Record<Meaning, Change>> = {
  content: ({ kind }) => ({ kind: kind === 'other' ? 'text' : kind }),
  reasoning: ({ kind }) => ({ kind: kind === 'other' || kind === 'text' ? 'reasoning' : kind }),
  system: () => ({ role: 'system', kind: 'text' }),
  description: () => ({ role: 'system', kind: 'description' }),
  call: () => ({ role: 'assistant', kind: 'call' }),
  'call data': () => ({ role: 'assistant', kind: 'call', isData: true }),
  result: () => ({ role: 'tool', kind: 'result' }),
  'result data': ({ kind }) => ({ isData: kind === 'result' }),
  data: () => ({ kind: 'other', isData: true }),
};

/** By the name of a member. */
function named(sense: Sense, key: string, { type = '', parent }: Enclosing): void {
  const isOfRoot = parent === undefined;
  if (isOfRoot && (key === 'content' || turnLists.has(key))) sense.turn = 1;
  const meaning = key === 'input' && callType.test(type) ? 'call data' : meanings.get(key);
  // At the root these are settings.
  if (meaning !== undefined && !(isOfRoot && meaning === 'reasoning')) Object.assign(sense, effects[meaning](sense));
}

/** undefined: no text; `unread`: content that is none. */
function senseOf(senses: Senses, found: FoundString, starts: (prefix: string) => boolean) {
  if (found.form === undefined) return senseOfValue(senses, found, starts);
  const sense = senses.of(found.within);
  return isOfCall(sense) ? sense : undefined;
}

const isOfCall = ({ isData, kind }: Sense): boolean => isData && kind !== 'other';

function senseOfValue(senses: Senses, { within, key }: FoundString, starts: (prefix: string) => boolean) {
  // An element of a list is judged by the list's name.
  const name = typeof key === 'number' ? String(within.key ?? '') : key;
  const sense = senses.at(within, key);
  if (sense.isData) return sense;
  if (opaque.has(name)) return undefined;
  if (starts('data:')) return 'unread';
  if (media.has(name)) {
    if (name === 'data' && within.type === 'text') return { ...sense, kind: 'text' } as const;
    return starts('http') ? ({ ...sense, kind: 'other' } as const) : 'unread';
  }
  const isName = name === 'name' || name === 'required' || name === '$ref' || name === 'pattern';
  const isOfTool = sense.kind === 'description' || sense.kind === 'call' || sense.kind === 'result';
  return isName && isOfTool ? undefined : sense;
}

const isEmpty = ({ start, end, form }: FoundString): boolean => form !== 'number' && end - start === 2;

/** A number as it was written: as JavaScript's it may have other digits. */
const written = (bytes: Uint8Array, found: FoundString): string =>
  found.form === 'number'
    ? Buffer.from(bytes.subarray(found.start, found.end)).toString('latin1')
    : stringAt(bytes, found);

/** The texts of a message in JSON. Throws invalid_request for a message that is none. */
export class JsonTexts implements PromptTexts {
  readonly texts: PromptText[] = [];
  readonly unread: string[] = [];
  readonly #bytes: Uint8Array;
  readonly #places = new Map<PromptText, { readonly found: FoundString; readonly index: number }>();
  readonly #changed = new Map<FoundString, string>();

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    const senses = new Senses();
    const { strings, numbers } = scanStrings(bytes);
    for (const found of strings) {
      const starts = (prefix: string) =>
        Buffer.from(bytes.subarray(found.start + 1, found.start + 1 + prefix.length))
          .toString('latin1')
          .toLowerCase() === prefix;
      const sense = senseOf(senses, found, starts);
      if (sense === undefined || isEmpty(found)) continue;
      const field = fieldOf(found.within, found.key);
      if (sense === 'unread') {
        this.unread.push(field);
        continue;
      }
      const { role, kind, turn } = sense;
      const plain = { role, kind, turn, field, text: written(bytes, found) };
      const text: PromptText = isOfCall(sense) ? { ...plain, inData: found.form ?? 'value' } : plain;
      this.#places.set(text, { found, index: this.texts.length });
      this.texts.push(text);
    }
    for (const list of numbers) if (senses.of(list).kind === 'text') this.unread.push(fieldOf(list.parent!, list.key!));
  }

  replace(text: PromptText, by: string): void {
    const place = this.#places.get(text);
    if (place === undefined) throw new Error('the text is none of this request, or was replaced before');
    if (by === text.text) return;
    const changed = { ...text, text: by };
    this.texts[place.index] = changed;
    this.#places.set(changed, place);
    this.#places.delete(text);
    this.#changed.set(place.found, by);
  }

  /** The message with its replaced texts; undefined: none was replaced. */
  written(): Uint8Array | undefined {
    if (this.#changed.size === 0) return undefined;
    const edits = [...this.#changed].map(([{ start, end }, text]) => ({ start, end, text: JSON.stringify(text) }));
    return applyEdits(this.#bytes, edits);
  }
}

function fieldOf(within: Enclosing, key: string | number): string {
  const step = typeof key === 'number' ? `[${key}]` : key;
  if (within.parent === undefined) return step;
  return `${fieldOf(within.parent, within.key!)}${typeof key === 'number' ? '' : '.'}${step}`;
}

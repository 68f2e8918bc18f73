/** A message of the upstream as checks of answers read it, and its texts as they are written back. Pure. */
import { isObject, type JsonObject, objectOf, tryParseBytes } from '../../../../core/json/json.ts';
import type { Message } from '../upstream.ts';

/** `transcript`: the words of sound. */
export type BlockKind = 'text' | 'thinking' | 'arguments' | 'transcript';

export interface WholeText {
  readonly kind: BlockKind;
  readonly text: string;
}

/** What is shown for a text. */
type Shown = (text: string) => string;

/** A block grows. */
export interface Growth extends WholeText {
  readonly does: 'grow';
  readonly block: string;
  readonly message: Message;
  /** The message with another text there. */
  written(text: string): Message;
}

/** A message with whole texts, or none. */
interface Sending {
  readonly does: 'send';
  readonly texts: readonly WholeText[];
  /** They are the words of this block's sound. */
  readonly words?: string;
  written(shown: Shown): Message;
}

/** A part of a message, in its order. */
export type Step =
  | Growth
  | Sending
  | { readonly does: 'close'; readonly block: string }
  /** Sound of which the words are those of this block. */
  | { readonly does: 'sound'; readonly block: string; readonly message: Message }
  /** No word of this block's sound is missing any more. */
  | { readonly does: 'complete'; readonly block: string }
  /** Sound that was not sent is not wanted any more. */
  | { readonly does: 'drop' };

export interface AnswerReading {
  /** The answer that it belongs to; undefined: none that runs. */
  readonly answer: string | undefined;
  /** The item that it is about. */
  readonly item?: string | undefined;
  readonly steps: readonly Step[];
  /** Nothing more of the answer comes. */
  readonly ends?: boolean;
}

/** How the answers of one session are read. */
export interface AnswerReader {
  /** undefined: it cannot be read. */
  read(message: Message): AnswerReading | undefined;
  /** The last message of an answer that was refused, without what it said; absent: it is left out. */
  refusedEnd?(message: Message): Message;
}

export const jsonOf = ({ data }: Message): JsonObject | undefined => objectOf(tryParseBytes(data));

export function messageOf(json: object, { isBinary }: Message): Message {
  return { data: Buffer.from(JSON.stringify(json)), isBinary };
}

/** Members with texts of an answer. */
const kinds: ReadonlyMap<string, BlockKind> = new Map([
  ...['text', 'delta', 'refusal', 'output'].map((name) => [name, 'text'] as const),
  ...['arguments', 'code', 'input'].map((name) => [name, 'arguments'] as const),
  ['transcript', 'transcript'],
]);

/** The texts that stand under such names, wherever they are. */
function wholeTexts(value: unknown, name = '', found: WholeText[] = []): readonly WholeText[] {
  const kind = kinds.get(name);
  if (typeof value === 'string' && kind !== undefined && value !== '') found.push({ kind, text: value });
  else if (Array.isArray(value)) for (const one of value) wholeTexts(one, name, found);
  else if (isObject(value)) for (const [member, one] of Object.entries(value)) wholeTexts(one, member, found);
  return found;
}

/** The same object where nothing is shown otherwise. `name`: of the member; undefined: all texts are shown, whatever their names. */
function withShown(value: unknown, shown: Shown, name: string | undefined): unknown {
  if (typeof value === 'string') return (name === undefined || kinds.has(name)) && value !== '' ? shown(value) : value;
  if (Array.isArray(value)) {
    const made = value.map((one) => withShown(one, shown, name));
    return made.every((one, index) => one === value[index]) ? value : made;
  }
  if (!isObject(value)) return value;
  const made = Object.entries(value).map(
    ([member, one]) => [member, withShown(one, shown, name === undefined ? undefined : member)] as const,
  );
  return made.every(([member, one]) => one === value[member]) ? value : Object.fromEntries(made);
}

/** A message of which all texts are whole. `words`: the block of which they are the words. */
export function sending(message: Message, json: JsonObject, words?: string): Step {
  return {
    does: 'send',
    texts: wholeTexts(json),
    ...(words === undefined ? {} : { words }),
    written(shown) {
      const made = withShown(json, shown, '') as JsonObject;
      return made === json ? message : messageOf(made, message);
    },
  };
}

/** A message in which the vendor repeats what the client has sent: nothing of it is judged, all of its texts may be shown otherwise. */
export function repeating(message: Message, json: JsonObject): Step {
  return {
    does: 'send',
    texts: [],
    written(shown) {
      const made = withShown(json, shown, undefined) as JsonObject;
      return made === json ? message : messageOf(made, message);
    },
  };
}

/** A message without any text of an answer. */
export const passing = (message: Message): Step => ({ does: 'send', texts: [], written: () => message });

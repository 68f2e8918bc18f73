/** Prompt rules: the extension point of plugins that read, refuse or change the texts of a request, once, before it costs anything. */
import {
  type ContextKey,
  defineExtensionPoint,
  defineService,
  type Exchange,
} from '../../../core/contract/contract.ts';
import type { Prompt, ToolCallPart, ToolResultPart, Turn } from '../canonical/prompt.ts';

/** A text of a request that a model reads. */
export interface PromptText {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** `description`: of tools and schemas. `other`: any other text of the request, such as metadata; no id, no address of content. */
  readonly kind: 'text' | 'reasoning' | 'call' | 'result' | 'description' | 'other';
  /** Its place in the request: `messages[0].content[1].text`. Of a form: the name of its field. */
  readonly field: string;
  /** The message that it belongs to, counted from 1; 0: none. */
  readonly turn: number;
  /** Decoded. Arguments of tool calls are JSON text, or its strings, as the client wrote them. */
  readonly text: string;
  /** It stands in an object of a call or its result, and is no part of another text: a value, or the name of a member or a number, which become texts when they are replaced. */
  readonly inData?: 'value' | 'name' | 'number';
}

/** The texts of one request, in its own order. */
export interface PromptTexts {
  readonly texts: readonly PromptText[];
  /** Fields with content that is no text: media, files, token ids. */
  readonly unread: readonly string[];
  /** Writes another text to the place of this one; all other bytes of the request stay. Later rules read the new one. */
  replace(text: PromptText, by: string): void;
}

/** A session between a client and a model, of which each message is asked about. */
export interface OpenSession {
  readonly remoteAddress: string;
}

/** The request that a rule is asked about. */
export interface PromptContext {
  /** `chat`, `embeddings`, `images`, `realtime` …, as in settings. */
  readonly operation: string;
  /** The request's id; absent: a message of a session. */
  readonly requestId?: string;
  /** The session of the message: the same object for all of its messages and answers; absent: a request. */
  readonly session?: OpenSession;
  /** The value of a context key, as of an exchange: the caller, the call. Of messages of a session only the caller. */
  find<T>(key: ContextKey<T>): T | undefined;
}

/** A rule about the texts of requests. */
export interface PromptRule {
  readonly name: string;
  /** The operations that it reads; absent: all that have texts. */
  readonly operations?: readonly string[];
  /** Whether it reads this request; absent: it does. Where no rule does, its texts are not looked for. */
  applies?(context: PromptContext): boolean;
  /**
   * Called once for each request, whatever its protocol, before money is held and before any attempt; and for each message of a
   * client in a realtime or live session. Throws a GatewayError to refuse: nothing is sent, and nothing is charged.
   */
  prompt(prompt: PromptTexts, context: PromptContext): void | Promise<void>;
}

/** Rules about the texts of requests. Owned by `prompts`. */
export const prompts = defineExtensionPoint<PromptRule>('prompts');

/** The rules, for messages that are no request of their own, and the texts of requests. Provided by `prompts`. */
export interface PromptRules {
  /** The texts of a request as the rules have left them, for a plugin that stands below; to read alone. */
  textsOf(exchange: Exchange): Pick<PromptTexts, 'texts' | 'unread'>;
  /** The message with its texts as the rules leave them; undefined: unchanged. A promise only where a rule waits. Throws or rejects as a rule does. */
  pass(message: Uint8Array, context: PromptContext): Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

/** The service by which plugins read the texts of requests and of messages in sessions. */
export const promptRules = defineService<PromptRules>('prompt rules');

/** What a model reads as one text: the texts of each message and kind, joined without a gap, so that no word is split. */
export function joinedTexts(texts: readonly PromptText[]): string[] {
  const joined: string[] = [];
  let last: PromptText | undefined;
  for (const text of texts) {
    if (last !== undefined && isOneText(last, text)) joined.push(`${joined.pop()}${text.text}`);
    else joined.push(text.text);
    last = text;
  }
  return joined;
}

/** Whether two texts that follow one another are parts of one message. */
export function isOneText(last: PromptText, text: PromptText): boolean {
  if (last.inData !== undefined || text.inData !== undefined) return false;
  const isMessage = text.turn > 0 || (text.role === 'system' && text.kind === 'text');
  return isMessage && last.turn === text.turn && last.kind === text.kind && last.role === text.role;
}

/** The texts of a prompt in the canonical format. Fields are those of that format. */
export function promptTexts({ turns, tools, output }: Prompt): PromptText[] {
  const texts = turns.flatMap((turn, index) => turnTexts(turn, index));
  const described = (text: string | undefined, field: string) => {
    if (text !== undefined && text !== '') texts.push({ role: 'system', kind: 'description', field, turn: 0, text });
  };
  tools.forEach((tool, index) => {
    if (tool.kind === 'hosted') return;
    described(tool.description, `tools[${index}].description`);
    if (tool.kind === 'custom') described(tool.grammar?.definition, `tools[${index}].grammar.definition`);
    else if (tool.schema !== undefined) described(JSON.stringify(tool.schema), `tools[${index}].schema`);
  });
  if (output?.form === 'schema') described(JSON.stringify(output.schema), 'output.schema');
  return texts;
}

function turnTexts({ role, parts }: Turn, index: number): PromptText[] {
  const turn = index + 1;
  return parts.flatMap((part, number): PromptText[] => {
    const field = `turns[${index}].parts[${number}]`;
    if (part.kind === 'tool-call') return [callText(part, field, turn)];
    if (part.kind === 'tool-result') return resultTexts(part, field, turn);
    if (part.kind === 'reasoning') return [{ role, kind: 'reasoning', field, turn, text: part.text }];
    if (part.kind === 'text' || part.kind === 'refusal') return [{ role, kind: 'text', field, turn, text: part.text }];
    if (part.kind === 'document' && part.source.form === 'text')
      return [{ role, kind: 'text', field, turn, text: part.source.text }];
    return [];
  });
}

function callText({ input }: ToolCallPart, field: string, turn: number): PromptText {
  return { role: 'assistant', kind: 'call', field, turn, text: input };
}

function resultTexts({ parts }: ToolResultPart, field: string, turn: number): PromptText[] {
  return parts.flatMap((part, index) =>
    part.kind === 'text'
      ? [{ role: 'tool', kind: 'result', field: `${field}.parts[${index}]`, turn, text: part.text } as const]
      : [],
  );
}

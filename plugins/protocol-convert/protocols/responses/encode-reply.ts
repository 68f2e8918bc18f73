/** Words a whole answer for a responses client. Pure. */
import type { Citation, MediaPart, Part, TextPart, ToolCallPart } from '../../canon.ts';
import type { ReplyContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import type { Choice, Reply } from '../../reply.ts';
import { keepsakeOfCall, keepsakeOfText } from './keepsakes.ts';
import {
  annotationOf,
  callItem,
  type ItemStatus,
  imageItem,
  logprobObject,
  mediaText,
  messageItem,
  reasoningItem,
  refusalPart,
  searchItem,
  textPart,
} from './output-items.ts';
import { endingMembers, endingOf, itemId, responseBase } from './response-object.ts';

/** The response object of an answer; of several choices the first, as the protocol gives one. */
export function encodeReply(reply: Reply, context: ReplyContext): JsonObject {
  const choice = reply.choices[0];
  const hasRefusal = choice?.parts.some(({ kind }) => kind === 'refusal') ?? false;
  const ending = endingOf(choice?.stop, hasRefusal);
  const output = choice === undefined ? [] : new ItemList(context, choice, ending.status).items;
  const response = { ...responseBase(context, reply), ...endingMembers(ending, context.usage()), output };
  context.onResponse?.(JSON.stringify(response));
  return response;
}

interface OpenText {
  text: string;
  readonly annotations: JsonObject[];
  readonly logprobs: JsonObject[];
}

/** Gathers parts to items: neighbouring texts and refusals are one message. */
class ItemList {
  readonly items: JsonObject[] = [];
  readonly #context: ReplyContext;
  #content: JsonObject[] = [];
  #text: OpenText | undefined;

  constructor(context: ReplyContext, { parts, cutCalls }: Choice, status: ItemStatus) {
    this.#context = context;
    for (const part of parts) this.#add(part, cutCalls);
    this.#endMessage(status);
  }

  #add(part: Part, cutCalls: ReadonlySet<string>): void {
    switch (part.kind) {
      case 'text':
        this.#addText(part);
        break;
      case 'refusal':
        this.#endText();
        this.#content.push(refusalPart(part.text));
        break;
      case 'reasoning':
        this.#push('rs', (id) => reasoningItem(id, part.text, this.#seal(part.keepsake?.value)));
        break;
      case 'tool-call':
        this.#addCall(part, cutCalls.has(part.id));
        break;
      case 'search':
        this.#push('ws', (id) => searchItem(id, part, 'completed'));
        break;
      case 'tool-result':
        // Answers hold none.
        break;
      default:
        this.#addMedia(part);
    }
  }

  #addMedia(media: MediaPart): void {
    const text = mediaText(media);
    if (text !== undefined) this.#addText({ kind: 'text', text });
    else if (media.kind === 'image') this.#push('ig', (id) => imageItem(id, media, true));
  }

  #addText({ text, citations = [], logprobs = [], keepsake }: TextPart): void {
    this.#text ??= { text: '', annotations: [], logprobs: [] };
    const base = this.#text.text.length;
    this.#text.text += text;
    for (const citation of citations) this.#annotate(this.#text, citation, base);
    this.#text.logprobs.push(...logprobs.map(logprobObject));
    if (keepsake === undefined) return;
    this.#push('rs', (id) => reasoningItem(id, '', this.#seal(keepsakeOfText(keepsake.value))));
  }

  #annotate(open: OpenText, citation: Citation, base: number): void {
    const { start, end } = citation;
    const isWhole = start === undefined || end === undefined;
    const span = isWhole ? { start: base, end: open.text.length } : { start: base + start, end: base + end };
    const annotation = annotationOf(citation, span);
    if (annotation !== undefined) open.annotations.push(annotation);
  }

  #addCall({ id: callId, name, namespace, custom = false, input, keepsake }: ToolCallPart, isCut: boolean): void {
    const prefix = custom ? 'ctc' : 'fc';
    this.#push(prefix, (id) =>
      callItem({ id, callId, name, namespace, custom }, input, isCut ? 'incomplete' : 'completed'),
    );
    if (keepsake === undefined || isCut) return;
    this.#push('rs', (id) => reasoningItem(id, '', this.#seal(keepsakeOfCall(callId, keepsake.value))));
  }

  #seal(keepsake: string | undefined): string | undefined {
    return keepsake === undefined ? undefined : this.#context.seal(keepsake);
  }

  #push(prefix: string, word: (id: string) => JsonObject): void {
    this.#endMessage('completed');
    this.items.push(word(itemId(prefix, this.#context.exchangeId, this.items.length)));
  }

  #endText(): void {
    const open = this.#text;
    this.#text = undefined;
    if (open !== undefined) this.#content.push(textPart(open.text, open.annotations, open.logprobs));
  }

  #endMessage(status: ItemStatus): void {
    this.#endText();
    const content = this.#content;
    this.#content = [];
    if (content.length === 0) return;
    this.items.push(messageItem(itemId('msg', this.#context.exchangeId, this.items.length), content, status));
  }
}

/** Encodes a whole answer for a responses client. Pure. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../common/canonical/codec.ts';
import type {
  Citation,
  MediaPart,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from '../../../../common/canonical/prompt.ts';
import type { Choice, Reply } from '../../../../common/canonical/reply.ts';
import { opaqueStateOfCall, opaqueStateOfRedacted, opaqueStateOfText } from '../opaque-state.ts';
import {
  annotationOf,
  callItem,
  callPrefix,
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

/** The response object of an answer; of several choices the first, as the protocol has one. */
export function encodeReply(reply: Reply, context: ReplyContext): JsonObject {
  const choice = reply.choices[0];
  const hasRefusal = choice?.parts.some(({ kind }) => kind === 'refusal') ?? false;
  const ending = endingOf(choice?.stop, hasRefusal);
  const output = choice === undefined ? [] : new ItemList(context, choice, ending.status).items;
  const texts = choice?.parts.map((part) => (part.kind === 'text' ? part.text : '')) ?? [];
  const response = {
    ...responseBase(context, reply),
    ...endingMembers(ending, context.usage(), context.now()),
    output,
    output_text: texts.join(''),
  };
  context.onResponse?.(JSON.stringify(response));
  return response;
}

interface OpenText {
  text: string;
  readonly annotations: JsonObject[];
  readonly logprobs: JsonObject[];
}

/** Groups parts into items: adjacent texts and refusals form one message. */
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
        this.#push('rs', (id) => reasoningItem(id, part.text, this.#seal(opaqueStateOfReasoning(part))));
        break;
      case 'tool-call':
        this.#addCall(part, cutCalls.has(part.id));
        break;
      case 'search':
        this.#push('ws', (id) => searchItem(id, part, 'completed'));
        break;
      case 'tool-result':
        // Answers contain none.
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

  #addText({ text, citations = [], logprobs = [], opaqueState }: TextPart): void {
    this.#text ??= { text: '', annotations: [], logprobs: [] };
    const base = this.#text.text.length;
    this.#text.text += text;
    for (const citation of citations) this.#annotate(this.#text, citation, base);
    this.#text.logprobs.push(...logprobs.map(logprobObject));
    if (opaqueState === undefined) return;
    this.#push('rs', (id) => reasoningItem(id, '', this.#seal(opaqueStateOfText(opaqueState.value))));
  }

  #annotate(open: OpenText, citation: Citation, base: number): void {
    const { start, end } = citation;
    const isWhole = start === undefined || end === undefined;
    const span = isWhole ? { start: base, end: open.text.length } : { start: base + start, end: base + end };
    const annotation = annotationOf(citation, span);
    if (annotation !== undefined) open.annotations.push(annotation);
  }

  #addCall({ id: callId, name, namespace, custom = false, input, opaqueState }: ToolCallPart, isCut: boolean): void {
    this.#push(callPrefix({ namespace, custom }), (id) =>
      callItem({ id, callId, name, namespace, custom }, input, isCut ? 'incomplete' : 'completed'),
    );
    if (opaqueState === undefined || isCut) return;
    this.#push('rs', (id) => reasoningItem(id, '', this.#seal(opaqueStateOfCall(callId, opaqueState.value))));
  }

  #seal(opaqueState: string | undefined): string | undefined {
    return opaqueState === undefined ? undefined : this.#context.seal(opaqueState);
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

function opaqueStateOfReasoning({ opaqueState, redacted }: ReasoningPart): string | undefined {
  return opaqueState !== undefined && redacted === true ? opaqueStateOfRedacted(opaqueState.value) : opaqueState?.value;
}

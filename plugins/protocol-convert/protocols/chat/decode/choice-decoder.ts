/** Decodes one choice of an answer, streamed or whole, in any dialect of chat. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { ReplyEvents } from '../../../../common/canonical/events.ts';
import type { Citation, TokenLogprob } from '../../../../common/canonical/prompt.ts';
import type { StopReason } from '../../../../common/canonical/reply.ts';
import { answeredSource, bytesSource, plainMediaType, sniffMediaType } from '../../../../common/encoding/media.ts';
import { citedSource } from '../../../encoding/citations.ts';
import { isStopText, stopReasonOf } from '../finish.ts';
import { decodeLogprobs } from '../logprobs.ts';
import { ReasoningDetails } from '../opaque-state.ts';
import { CallDecoder } from './call-decoder.ts';
import { SpokenText } from './spoken-text.ts';

export class ChoiceDecoder {
  readonly #events: ReplyEvents;
  readonly #choice: number;
  readonly #calls: CallDecoder;
  readonly #details = new ReasoningDetails();
  readonly #spoken = new SpokenText();
  /** A reasoning block is open. */
  #isReasoning = false;
  /** The open reasoning block's text, as far as it came without details. */
  #plainReasoning = '';
  /** A text block is open, as far as this decoder knows. */
  #isText = false;
  /** UTF-16 length of all text, and the offset of the open block in it. */
  #textLength = 0;
  #blockStart = 0;
  #finish: string | undefined;
  #stopText: string | undefined;

  constructor(events: ReplyEvents, choice: number) {
    this.#events = events;
    this.#choice = choice;
    this.#calls = new CallDecoder(events, choice);
  }

  /** One entry of `choices`. Only `end` ends the choice: some servers send more after the finish reason. */
  decode(choice: JsonObject, isWholeAnswer: boolean): void {
    const delta = choice['delta'];
    // Some servers send both members: streams with the message so far, whole answers with an empty delta.
    const isWhole = isWholeAnswer ? isObject(choice['message']) : !isObject(delta);
    const message = isWhole ? choice['message'] : delta;
    const finish = choice['finish_reason'];
    if (typeof finish === 'string' && finish !== '') this.#takeFinish(finish, choice);
    if (!isObject(message)) return;
    const logprobs = choice['logprobs'] ? decodeLogprobs(choice['logprobs']) : undefined;
    this.#decodeMessage(message, logprobs, isWhole);
  }

  /** A source of the text; offsets are relative to the open block. */
  cite(citation: Citation): void {
    if (!this.#isText) this.#openText();
    this.#events.citation(this.#choice, citation);
  }

  /** Emits the rest and the finish reason. */
  end(): void {
    this.#closeReasoning();
    const reason = this.#finish === undefined ? 'stop' : stopReasonOf(this.#finish);
    if (reason === 'malformed') this.#endMalformed();
    else this.#endAs(reason);
  }

  #endAs(reason: StopReason): void {
    const events = this.#events;
    this.#calls.end(reason === 'length' ? 'cut' : 'whole');
    if (reason === 'stop' && this.#stopText !== undefined && !events.hasCalls(this.#choice))
      events.stop(this.#choice, 'stop-sequence', this.#stopText);
    else events.stop(this.#choice, reason);
  }

  #endMalformed(): void {
    this.#calls.end('void');
    if (this.#events.hasCalls(this.#choice)) this.#events.stop(this.#choice, 'length');
    else this.#events.stop(this.#choice, this.#textLength > 0 ? 'stop' : 'refusal');
  }

  #takeFinish(finish: string, choice: JsonObject): void {
    this.#finish = finish;
    const text = choice['stop_reason'] ?? choice['matched_stop'];
    if (isStopText(text)) this.#stopText = text;
  }

  #decodeMessage(message: JsonObject, logprobs: readonly TokenLogprob[] | undefined, isWhole: boolean): void {
    this.#decodeReasoning(message);
    const content = message['content'];
    if (typeof content === 'string') this.#text(content, logprobs);
    else if (content) this.#decodeParts(listOf(content), logprobs);
    const refusal = message['refusal'];
    if (typeof refusal === 'string' && refusal !== '') this.#refusal(refusal);
    if (message['images']) this.#decodeImages(message['images']);
    if (message['audio']) this.#decodeAudio(message['audio'], isWhole);
    if (message['annotations']) this.#decodeAnnotations(message['annotations']);
    if (message['extra_content']) this.#signText(message['extra_content']);
    if (message['tool_calls']) this.#decodeCalls(message['tool_calls'], isWhole);
    const old = message['function_call'];
    if (isObject(old)) this.#decodeCalls([{ index: -1, function: old }], isWhole);
  }

  /** The same thought may arrive under several member names, and again as a whole with its signature: it is emitted once. */
  #decodeReasoning(message: JsonObject): void {
    const details = message['reasoning_details'] ?? message['thinking_blocks'];
    if (Array.isArray(details)) this.#details.add(details);
    const plain = textOf(message['reasoning_content']) ?? textOf(message['reasoning']);
    const text = plain ?? (Array.isArray(details) ? textsOf(details) : '');
    if (text === '' || (plain === undefined && this.#details.isSigned && text === this.#plainReasoning)) return;
    this.#reasoning(text);
    if (plain !== undefined) this.#plainReasoning += plain;
  }

  #reasoning(text: string): void {
    this.#isReasoning = true;
    this.#isText = false;
    this.#events.reasoning(this.#choice, text);
  }

  /** Parts other than plain text are decoded like the members that they correspond to. */
  #decodeParts(parts: readonly unknown[], logprobs: readonly TokenLogprob[] | undefined): void {
    for (const part of parts.filter(isObject)) {
      if (part['type'] === 'thinking') this.#reasoningPart(part);
      else if (part['type'] === 'image_url') this.#decodeImages([part]);
      else if (part['type'] === 'refusal') this.#refusal(textOf(part['refusal']) ?? '');
      else this.#text(textOf(part['text']) ?? '', logprobs);
    }
  }

  #reasoningPart(part: JsonObject): void {
    const thinking = part['thinking'];
    const text = typeof thinking === 'string' ? thinking : textsOf(listOf(thinking));
    if (text !== '') this.#reasoning(text);
  }

  #text(text: string, logprobs: readonly TokenLogprob[] | undefined): void {
    if (text === '' && logprobs === undefined) return;
    const unsaid = this.#events.audioAsText ? this.#spoken.content(text) : text;
    if (unsaid !== '' || text === '') {
      if (!this.#isText) this.#openText();
      this.#events.text(this.#choice, unsaid, logprobs);
    }
    this.#textLength += text.length;
  }

  #openText(): void {
    this.#closeReasoning();
    this.#isText = true;
    this.#blockStart = this.#textLength;
  }

  #refusal(text: string): void {
    this.#closeReasoning();
    this.#isText = false;
    this.#events.refusal(this.#choice, text);
  }

  /** Ends the reasoning with the vendor's opaque state; reasoning without one is marked as the vendor's own. */
  #closeReasoning(): void {
    const isOpen = this.#isReasoning;
    if (!isOpen && !this.#details.isSigned) return;
    this.#isReasoning = false;
    this.#plainReasoning = '';
    const opaqueState = this.#details.take();
    if (isOpen) this.#events.close(this.#choice, opaqueState ?? '');
    else if (opaqueState !== undefined) this.#events.redacted(this.#choice, opaqueState);
    this.#isText = false;
  }

  #decodeCalls(entries: unknown, isWhole: boolean): void {
    for (const entry of listOf(entries)) {
      if (!isObject(entry)) continue;
      this.#closeReasoning();
      this.#isText = false;
      this.#calls.entry(entry, isWhole);
    }
  }

  #decodeImages(images: unknown): void {
    for (const entry of listOf(images)) {
      const holder = objectOf(entry)?.['image_url'];
      const url = textOf(objectOf(holder)?.['url']) ?? textOf(holder);
      if (url === undefined) continue;
      this.#closeReasoning();
      this.#isText = false;
      const extra = objectOf(entry)?.['extra_content'];
      const signed = isObject(extra) ? { opaqueState: { maker: '', value: JSON.stringify(extra) } } : {};
      this.#events.media(this.#choice, { kind: 'image', source: answeredSource(url), ...signed });
    }
  }

  /** Streams carry raw samples; whole answers carry a file with a recognisable header. */
  #decodeAudio(value: unknown, isWhole: boolean): void {
    const audio = objectOf(value) ?? {};
    const base64 = textOf(audio['data']) ?? '';
    const transcript = textOf(audio['transcript']);
    if (base64 === '' && transcript === undefined) return;
    if (this.#events.audioAsText && (transcript !== undefined || this.#spoken.hasTranscript)) {
      this.#transcript(transcript ?? '');
      return;
    }
    this.#closeReasoning();
    this.#isText = false;
    const named = textOf(audio['format']);
    const format = (isWhole ? sniffMediaType(base64) : undefined) ?? plainMediaType(named && `audio/${named}`);
    const source = isWhole
      ? bytesSource(base64, format ?? 'audio/pcm')
      : ({ form: 'bytes', mediaType: format ?? 'audio/pcm', base64 } as const);
    this.#events.media(this.#choice, { kind: 'audio', source, ...(transcript === undefined ? {} : { transcript }) });
  }

  /** The client's protocol has no audio: the transcript stands for it, as text. */
  #transcript(text: string): void {
    const unsaid = this.#spoken.transcript(text);
    if (unsaid === '') return;
    if (!this.#isText) this.#openText();
    this.#events.text(this.#choice, unsaid);
  }

  #decodeAnnotations(annotations: unknown): void {
    for (const annotation of listOf(annotations)) {
      const json = objectOf(annotation);
      const citation = objectOf(json?.[textOf(json['type']) ?? 'url_citation']) ?? json;
      const source = citation && citedSource(citation);
      if (source === undefined) continue;
      const quote = textOf(citation!['content']);
      this.cite({
        ...source,
        ...(quote === undefined ? {} : { quote }),
        ...this.#place(citation!['start_index'], citation!['end_index']),
      });
    }
  }

  /** Chat offsets are relative to the whole text, canonical offsets to the block. */
  #place(start: unknown, end: unknown): { start?: number; end?: number } {
    if (!this.#isText || !Number.isSafeInteger(start) || !Number.isSafeInteger(end)) return {};
    const [from, to] = [(start as number) - this.#blockStart, (end as number) - this.#blockStart];
    return from >= 0 && to > from ? { start: from, end: to } : {};
  }

  #signText(extra: unknown): void {
    if (!this.#isText || !isObject(extra)) return;
    this.#isText = false;
    this.#events.close(this.#choice, JSON.stringify(extra));
  }
}

function textsOf(entries: readonly unknown[]): string {
  let text = '';
  for (const entry of entries) {
    const part = objectOf(entry);
    if (part !== undefined) text += textOf(part['text']) ?? textOf(part['summary']) ?? textOf(part['thinking']) ?? '';
  }
  return text;
}

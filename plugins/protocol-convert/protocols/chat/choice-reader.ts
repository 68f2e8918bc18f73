/** Reads one choice of an answer, piece by piece or whole, whatever dialect of chat it is written in. */
import type { Citation, TokenLogprob } from '../../canon.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { StopReason } from '../../reply.ts';
import type { ReplyEvents } from '../../reply-events.ts';
import { bytesSource, plainMediaType, sniffMediaType, urlSource } from '../../wording/media.ts';
import { CallReader } from './call-reader.ts';
import { isStopText, stopReasonOf } from './finish.ts';
import { ReasoningDetails } from './keepsakes.ts';
import { readLogprobs } from './logprobs.ts';

export class ChoiceReader {
  readonly #events: ReplyEvents;
  readonly #choice: number;
  readonly #calls: CallReader;
  readonly #details = new ReasoningDetails();
  /** A reasoning block is open. */
  #isReasoning = false;
  /** A text block is open, as far as this reader knows. */
  #isText = false;
  /** UTF-16 length of all text, and where the open block begins in it. */
  #textLength = 0;
  #blockStart = 0;
  #finish: string | undefined;
  #stopText: string | undefined;

  constructor(events: ReplyEvents, choice: number) {
    this.#events = events;
    this.#choice = choice;
    this.#calls = new CallReader(events, choice);
  }

  /** An entry of `choices`. Its end is told by `end` alone: some servers go on after they named a reason. */
  read(choice: JsonObject, isWholeAnswer: boolean): void {
    const delta = choice['delta'];
    // Some servers send both: in streams a message grown so far, in whole answers an empty delta.
    const isWhole = isWholeAnswer ? isObject(choice['message']) : !isObject(delta);
    const message = isWhole ? choice['message'] : delta;
    const finish = choice['finish_reason'];
    if (typeof finish === 'string' && finish !== '') this.#takeFinish(finish, choice);
    if (!isObject(message)) return;
    const logprobs = choice['logprobs'] ? readLogprobs(choice['logprobs']) : undefined;
    this.#readMessage(message, logprobs, isWhole);
  }

  /** A source of the text; offsets are the open block's. */
  cite(citation: Citation): void {
    if (!this.#isText) this.#openText();
    this.#events.citation(this.#choice, citation);
  }

  /** Tells what is left, and why the choice ended. */
  end(): void {
    this.#closeReasoning();
    const reason = this.#finish === undefined ? 'stop' : stopReasonOf(this.#finish);
    if (reason === 'malformed') this.#endMalformed();
    else this.#endAs(reason);
  }

  #endAs(reason: StopReason): void {
    const events = this.#events;
    this.#calls.end(reason === 'length' ? 'cut' : 'whole');
    const hasCalls = events.hasCalls(this.#choice);
    if (reason === 'tool-calls' && !hasCalls) events.stop(this.#choice, 'stop');
    else if (reason === 'stop' && this.#stopText !== undefined && !hasCalls)
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

  #readMessage(message: JsonObject, logprobs: readonly TokenLogprob[] | undefined, isWhole: boolean): void {
    this.#readReasoning(message);
    const content = message['content'];
    if (typeof content === 'string') this.#text(content, logprobs);
    else if (content) this.#readParts(listOf(content), logprobs);
    const refusal = message['refusal'];
    if (typeof refusal === 'string' && refusal !== '') this.#refusal(refusal);
    if (message['images']) this.#readImages(message['images']);
    if (message['audio']) this.#readAudio(message['audio'], isWhole);
    if (message['annotations']) this.#readAnnotations(message['annotations']);
    if (message['extra_content']) this.#signText(message['extra_content']);
    if (message['tool_calls']) this.#readCalls(message['tool_calls'], isWhole);
    const old = message['function_call'];
    if (isObject(old)) this.#readCalls([{ index: -1, function: old }], isWhole);
  }

  /** The same thought may come under several names at once: it is told once. */
  #readReasoning(message: JsonObject): void {
    const details = message['reasoning_details'] ?? message['thinking_blocks'];
    if (Array.isArray(details)) this.#details.add(details);
    const text =
      textOf(message['reasoning_content']) ??
      textOf(message['reasoning']) ??
      (Array.isArray(details) ? textsOf(details) : '');
    if (text !== '') this.#reasoning(text);
  }

  #reasoning(text: string): void {
    this.#isReasoning = true;
    this.#isText = false;
    this.#events.reasoning(this.#choice, text);
  }

  /** What is not plain text is read as if it stood elsewhere. */
  #readParts(parts: readonly unknown[], logprobs: readonly TokenLogprob[] | undefined): void {
    for (const part of parts.filter(isObject)) {
      if (part['type'] === 'thinking') this.#reasoningPart(part);
      else if (part['type'] === 'image_url') this.#readImages([part]);
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
    if (!this.#isText) this.#openText();
    this.#textLength += text.length;
    this.#events.text(this.#choice, text, logprobs);
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

  /** Ends the reasoning with what its vendor wants back; a plain one is marked as this vendor's own. */
  #closeReasoning(): void {
    const isOpen = this.#isReasoning;
    if (!isOpen && !this.#details.isSigned) return;
    this.#isReasoning = false;
    const keepsake = this.#details.take();
    if (isOpen) this.#events.close(this.#choice, keepsake ?? '');
    else if (keepsake !== undefined) this.#events.redacted(this.#choice, keepsake);
    this.#isText = false;
  }

  #readCalls(entries: unknown, isWhole: boolean): void {
    for (const entry of listOf(entries)) {
      if (!isObject(entry)) continue;
      this.#closeReasoning();
      this.#isText = false;
      this.#calls.entry(entry, isWhole);
    }
  }

  #readImages(images: unknown): void {
    for (const entry of listOf(images)) {
      const holder = objectOf(entry)?.['image_url'];
      const url = textOf(objectOf(holder)?.['url']) ?? textOf(holder);
      if (url === undefined) continue;
      this.#closeReasoning();
      this.#isText = false;
      this.#events.media(this.#choice, { kind: 'image', source: urlSource(url) });
    }
  }

  /** Streams carry raw samples; whole answers a file whose head says what it is. */
  #readAudio(value: unknown, isWhole: boolean): void {
    const audio = objectOf(value) ?? {};
    const base64 = textOf(audio['data']) ?? '';
    const transcript = textOf(audio['transcript']);
    if (base64 === '' && transcript === undefined) return;
    this.#closeReasoning();
    this.#isText = false;
    const told = textOf(audio['format']);
    const format = (isWhole ? sniffMediaType(base64) : undefined) ?? plainMediaType(told && `audio/${told}`);
    const source = isWhole
      ? bytesSource(base64, format ?? 'audio/pcm')
      : ({ form: 'bytes', mediaType: format ?? 'audio/pcm', base64 } as const);
    this.#events.media(this.#choice, { kind: 'audio', source, ...(transcript === undefined ? {} : { transcript }) });
  }

  #readAnnotations(annotations: unknown): void {
    for (const annotation of listOf(annotations)) {
      const told = objectOf(objectOf(annotation)?.['url_citation']);
      const url = textOf(told?.['url']);
      if (told === undefined || url === undefined) continue;
      const title = textOf(told['title']);
      const quote = textOf(told['content']);
      this.cite({
        url,
        ...(title === undefined ? {} : { title }),
        ...(quote === undefined ? {} : { quote }),
        ...this.#place(told['start_index'], told['end_index']),
      });
    }
  }

  /** Chat counts from the beginning of the whole text, the common tongue from the block's. */
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

/** Reads chat answers, streamed and whole, and tells them as events. */
import type { ReplyDecoder } from '../../codec.ts';
import { isObject, type JsonObject, objectOf, textOf } from '../../json.ts';
import type { ReplyEvents } from '../../reply-events.ts';
import { ChoiceReader } from './choice-reader.ts';

/** More choices than any request asks for are not read. */
const maxChoices = 1024;

export class ChatDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  readonly #choices: ChoiceReader[] = [];
  #isStarted = false;
  /** What a searching server lists beside its choices. */
  #sources: readonly unknown[] = [];

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  payload(json: JsonObject): void {
    this.#read(json, false);
  }

  /** A whole answer is a stream of one piece. */
  whole(json: JsonObject): void {
    this.#read(json, true);
    this.end();
  }

  end(): void {
    if (this.#choices.length === 0) this.#reader(0);
    this.#tellSources();
    for (const reader of this.#choices) reader?.end();
  }

  #read(json: JsonObject, isWhole: boolean): void {
    const choices = json['choices'];
    if (!Array.isArray(choices)) return;
    if (!this.#isStarted && choices.length > 0) this.#start(json);
    const sources = json['search_results'] ?? json['citations'];
    if (Array.isArray(sources)) this.#sources = sources;
    for (const choice of choices) if (isObject(choice)) this.#reader(choice['index'])?.read(choice, isWhole);
  }

  #start(json: JsonObject): void {
    this.#isStarted = true;
    const created = json['created'];
    const createdAt = typeof created === 'number' && created > 0 ? Math.floor(created) : undefined;
    this.#events.start(textOf(json['id']), createdAt, textOf(json['service_tier']));
  }

  #reader(index: unknown): ChoiceReader | undefined {
    const place = typeof index === 'number' ? index : 0;
    const known = this.#choices[place];
    if (known !== undefined) return known;
    if (!Number.isSafeInteger(place) || place < 0 || place >= maxChoices) return undefined;
    const reader = new ChoiceReader(this.#events, place);
    this.#choices[place] = reader;
    return reader;
  }

  /** Such a list says what was read, not for which words: it stands for the whole text. */
  #tellSources(): void {
    if (this.#choices[0] === undefined) return;
    for (const source of this.#sources) {
      const url = textOf(source) ?? textOf(objectOf(source)?.['url']);
      const title = textOf(objectOf(source)?.['title']);
      if (url !== undefined) this.#choices[0].cite(title === undefined ? { url } : { url, title });
    }
  }
}

export function decodeReply(json: JsonObject, events: ReplyEvents): void {
  new ChatDecoder(events).whole(json);
}

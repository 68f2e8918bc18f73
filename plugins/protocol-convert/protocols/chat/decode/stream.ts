/** Decodes chat answers, streamed and whole, into events. */

import { isObject, type JsonObject, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { ReplyDecoder } from '../../../../common/canonical/codec.ts';
import { isChoice, type ReplyEvents } from '../../../../common/canonical/events.ts';
import { ChoiceDecoder } from './choice-decoder.ts';

export class ChatDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  readonly #choices: ChoiceDecoder[] = [];
  #isStarted = false;
  /** Sources that a searching server lists beside its choices. */
  #sources: readonly unknown[] = [];

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  payload(json: JsonObject): void {
    this.#decode(json, false);
  }

  /** A whole answer is decoded as a stream of one piece. */
  whole(json: JsonObject): void {
    this.#decode(json, true);
    this.end();
  }

  end(): void {
    if (this.#choices.length === 0) this.#decoder(0);
    this.#emitSources();
    for (const decoder of this.#choices) decoder?.end();
  }

  #decode(json: JsonObject, isWhole: boolean): void {
    const choices = json['choices'];
    if (!Array.isArray(choices)) return;
    if (!this.#isStarted && choices.length > 0) this.#start(json);
    const sources = json['search_results'] ?? json['citations'];
    if (Array.isArray(sources)) this.#sources = sources;
    for (const choice of choices) if (isObject(choice)) this.#decoder(choice['index'])?.decode(choice, isWhole);
  }

  #start(json: JsonObject): void {
    this.#isStarted = true;
    const created = json['created'];
    const createdAt = typeof created === 'number' && created > 0 ? Math.floor(created) : undefined;
    this.#events.start(textOf(json['id']), createdAt, textOf(json['service_tier']));
  }

  #decoder(index: unknown): ChoiceDecoder | undefined {
    const place = typeof index === 'number' ? index : 0;
    const known = this.#choices[place];
    if (known !== undefined) return known;
    if (!isChoice(place)) return undefined;
    const decoder = new ChoiceDecoder(this.#events, place);
    this.#choices[place] = decoder;
    return decoder;
  }

  /** The list gives sources without positions: they apply to the whole text. */
  #emitSources(): void {
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

/** Tells the calls of one choice apart, however loosely a server numbers and names them. */
import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../json.ts';
import type { ReplyEvents } from '../../reply-events.ts';

/** A call that holds several others, which some models write although nobody declared it. */
const wrapperName = 'multi_tool_use.parallel';

interface Call {
  readonly key: number;
  readonly index: number | undefined;
  id: string | undefined;
  name: string;
  /** What came before the name, and all of a wrapper's input. */
  held: string;
  keepsake: string | undefined;
}

/** How a choice's calls end. `cut`: within the last one. `void`: none of them may be carried out. */
export type CallsEnd = 'whole' | 'cut' | 'void';

export class CallReader {
  readonly #events: ReplyEvents;
  readonly #choice: number;
  readonly #calls: Call[] = [];
  #last: Call | undefined;
  #keys = 0;

  constructor(events: ReplyEvents, choice: number) {
    this.#events = events;
    this.#choice = choice;
  }

  /** One entry of `tool_calls`, a piece of a call unless `isWhole`; of the old form too: `{name, arguments}`. */
  entry(entry: JsonObject, isWhole: boolean): void {
    const custom = objectOf(entry['custom']);
    const body = custom ?? objectOf(entry['function']) ?? entry;
    const index = typeof entry['index'] === 'number' ? entry['index'] : undefined;
    const id = textOf(entry['id']);
    const name = textOf(body['name']);
    let call = isWhole ? undefined : this.#find(index, id, name);
    if (call === undefined) {
      // An id that is taken by another call would make two calls one for the client.
      const isTaken = this.#calls.some((other) => other.id === id);
      call = { key: this.#keys++, index, id: isTaken ? undefined : id, name: '', held: '', keepsake: undefined };
      this.#calls.push(call);
    } else call.id ??= id;
    this.#last = call;
    if (isObject(entry['extra_content'])) call.keepsake = JSON.stringify(entry['extra_content']);
    this.#grow(call, name, inputOf(body), custom !== undefined || entry['type'] === 'custom');
  }

  /** Ends all calls; wrappers become what they hold. */
  end(how: CallsEnd): void {
    for (const call of this.#calls) if (call.name === wrapperName && how !== 'void') this.#unwrap(call);
    for (const { key, keepsake } of this.#calls) {
      const isCut = how === 'void' || (how === 'cut' && key === this.#last?.key);
      this.#events.endCall(this.#choice, key, keepsake === undefined ? { isCut } : { isCut, keepsake });
    }
  }

  #find(index: number | undefined, id: string | undefined, name: string | undefined): Call | undefined {
    const last = this.#last;
    if (id === undefined && name === undefined) return index === undefined ? last : this.#at(index);
    const same = id === undefined ? undefined : this.#calls.findLast((call) => call.id === id);
    const there = index === undefined ? last : this.#at(index);
    if (same !== undefined) {
      const isAnother = name !== undefined && index !== undefined && index !== same.index && there === undefined;
      return isAnother ? undefined : same;
    }
    if (there === undefined || name === undefined)
      return there !== undefined && isFree(there, index) ? there : undefined;
    // A new id with a name begins a new call, whatever its index says; so does another name.
    if (id !== undefined && there.id !== undefined) return undefined;
    if (there.name === '') return there;
    return index !== undefined && there.name === name ? there : undefined;
  }

  #at(index: number): Call | undefined {
    return this.#last?.index === index ? this.#last : this.#calls.findLast((call) => call.index === index);
  }

  #grow(call: Call, name: string | undefined, input: string, isCustom: boolean): void {
    const isNamed = call.name !== '';
    if (!isNamed && name !== undefined) call.name = name;
    if (call.name === '' || call.name === wrapperName) {
      call.held += input;
      return;
    }
    if (isNamed) {
      if (input !== '') this.#events.call(this.#choice, call.key, { input });
      return;
    }
    const whole = call.held + input;
    call.held = '';
    const custom = isCustom ? true : undefined;
    this.#events.call(this.#choice, call.key, { id: call.id, name: call.name, input: whole, custom });
  }

  #unwrap({ key, id, held }: Call): void {
    const uses = listOf(objectOf(tryParse(held))?.['tool_uses']).filter(isObject);
    if (uses.length === 0) {
      this.#events.call(this.#choice, key, { id, name: wrapperName, input: held });
      return;
    }
    for (const [place, use] of uses.entries()) {
      const name = textOf(use['recipient_name'])?.replace(/^functions\./, '');
      const inner = this.#keys++;
      const innerId = id === undefined ? undefined : `${id}_${place}`;
      const input = JSON.stringify(use['parameters'] ?? {});
      this.#events.call(this.#choice, inner, { id: innerId, name, input });
      this.#events.endCall(this.#choice, inner);
    }
  }
}

/** Some servers give each piece an id of its own: without a name it goes on with what stands at its index. */
function isFree(there: Call, index: number | undefined): boolean {
  return there.id === undefined || index !== undefined;
}

function inputOf(body: JsonObject): string {
  const input = body['arguments'] ?? body['input'];
  if (typeof input === 'string') return input;
  return input === undefined || input === null ? '' : JSON.stringify(input);
}

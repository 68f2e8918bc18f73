/** Separates the tool calls of one choice, however a server numbers and names them. */

import { isObject, type JsonObject, listOf, objectOf, textOf, tryParse } from '../../../../../core/json/json.ts';
import type { ReplyEvents } from '../../../../common/canonical/events.ts';

/** A wrapper call that holds several calls. Some models emit one although the client did not declare it. */
const wrapperName = 'multi_tool_use.parallel';

interface Call {
  readonly key: number;
  readonly index: number | undefined;
  id: string | undefined;
  name: string;
  /** The call was emitted: its name can no longer grow. */
  isStarted: boolean;
  isCustom: boolean;
  /** Input that arrived before the start, and all input of a wrapper. */
  held: string;
  opaqueState: string | undefined;
}

/** How the calls of a choice end. `cut`: inside the last call. `void`: the client must not run any of them. */
export type CallsEnd = 'whole' | 'cut' | 'void';

export class CallDecoder {
  readonly #events: ReplyEvents;
  readonly #choice: number;
  readonly #calls: Call[] = [];
  #last: Call | undefined;
  #keys = 0;

  constructor(events: ReplyEvents, choice: number) {
    this.#events = events;
    this.#choice = choice;
  }

  /** One entry of `tool_calls`: a piece of a call unless `isWhole`. Also accepts the legacy form `{name, arguments}`. */
  entry(entry: JsonObject, isWhole: boolean): void {
    const { body, isCustom } = callBody(entry);
    const index = typeof entry['index'] === 'number' ? entry['index'] : undefined;
    const id = textOf(entry['id']);
    const name = textOf(body['name']);
    let call = isWhole ? undefined : this.#find(index, id, name);
    if (call === undefined) {
      this.#startHeld();
      // A repeated id would merge two calls into one for the client.
      const isTaken = this.#calls.some((other) => other.id === id);
      const key = this.#keys++;
      const own = isTaken ? undefined : id;
      call = { key, index, id: own, name: '', isStarted: false, isCustom, held: '', opaqueState: undefined };
      this.#calls.push(call);
    } else call.id ??= id;
    this.#last = call;
    if (isObject(entry['extra_content'])) call.opaqueState = JSON.stringify(entry['extra_content']);
    call.isCustom ||= isCustom;
    this.#grow(call, name, inputOf(body), isWhole);
  }

  /** Ends all calls and replaces each wrapper by the calls inside it. */
  end(how: CallsEnd): void {
    this.#startHeld();
    for (const call of this.#calls) if (call.name === wrapperName && how !== 'void') this.#unwrap(call);
    for (const { key, opaqueState } of this.#calls) {
      const isCut = how === 'void' || (how === 'cut' && key === this.#last?.key);
      this.#events.endCall(this.#choice, key, opaqueState === undefined ? { isCut } : { isCut, opaqueState });
    }
  }

  #find(index: number | undefined, id: string | undefined, name: string | undefined): Call | undefined {
    const there = index === undefined ? this.#last : this.#at(index);
    if (id === undefined && name === undefined) return there;
    const same = id === undefined ? undefined : this.#calls.findLast((call) => call.id === id);
    if (same !== undefined) {
      const isAnother = name !== undefined && index !== undefined && index !== same.index && there === undefined;
      return isAnother ? undefined : same;
    }
    if (there === undefined) return undefined;
    const goesOn = name === undefined ? isFree(there, index) : this.#isMeant(there, index, id, name);
    return goesOn ? there : undefined;
  }

  /** A new id with a name starts a new call whatever the index is; so does a different name. */
  #isMeant(there: Call, index: number | undefined, id: string | undefined, name: string): boolean {
    if (id !== undefined && there.id !== undefined) return false;
    if (there.name === '' || (index !== undefined && there.name === name)) return true;
    return this.#continuesName(there, name);
  }

  /** A further piece of a name, before any arguments. */
  #continuesName(call: Call, piece: string): boolean {
    const { isStarted, held, name } = call;
    if (isStarted || held !== '' || name === '' || name === piece) return false;
    const joined = name + piece;
    return wrapperName.startsWith(joined) || this.#events.beginsToolName(joined);
  }

  #at(index: number): Call | undefined {
    return this.#last?.index === index ? this.#last : this.#calls.findLast((call) => call.index === index);
  }

  #grow(call: Call, name: string | undefined, input: string, isWhole: boolean): void {
    if (call.isStarted) {
      if (input !== '') this.#events.call(this.#choice, call.key, { input });
      return;
    }
    if (name !== undefined && call.name === '') call.name = name;
    else if (name !== undefined && this.#continuesName(call, name)) call.name += name;
    call.held += input;
    if (call.name === '' || call.name === wrapperName) return;
    if (isWhole || call.held !== '' || this.#events.isWholeToolName(call.name)) this.#start(call);
  }

  /** Starts the calls that wait for the rest of their name: the name is complete. */
  #startHeld(): void {
    for (const call of this.#calls)
      if (!call.isStarted && call.name !== '' && call.name !== wrapperName) this.#start(call);
  }

  #start(call: Call): void {
    const { key, id, name, held, isCustom } = call;
    call.isStarted = true;
    call.held = '';
    this.#events.call(this.#choice, key, { id, name, input: held, custom: isCustom ? true : undefined });
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

/** Some servers give each piece a new id: without a name the piece continues the call at its index. */
function isFree(there: Call, index: number | undefined): boolean {
  return there.id === undefined || index !== undefined;
}

/** `type` selects the member that holds the call. Without it the non-empty member counts, as some servers send both. */
function callBody(entry: JsonObject): { body: JsonObject; isCustom: boolean } {
  const custom = objectOf(entry['custom']);
  const called = objectOf(entry['function']);
  const type = textOf(entry['type']);
  const isCustom = type === 'custom' || (type !== 'function' && isFilled(custom) && !isFilled(called));
  return { body: (isCustom ? (custom ?? called) : (called ?? custom)) ?? entry, isCustom };
}

function isFilled(body: JsonObject | undefined): boolean {
  return body !== undefined && (textOf(body['name']) !== undefined || inputOf(body) !== '');
}

function inputOf(body: JsonObject): string {
  const input = body['arguments'] ?? body['input'];
  if (typeof input === 'string') return input;
  return input === undefined || input === null ? '' : JSON.stringify(input);
}

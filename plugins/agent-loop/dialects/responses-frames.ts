/** A run as one stream of responses: events of its turns in one numbering, and those of the calls of tools between them. Pure. */
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import type { End, Frames, ToolDone, ToolUse } from '../talk.ts';
import { begunFiles } from './responses-files.ts';
import { approvalItem, callItem, type ResponsesRun } from './responses-items.ts';
import { annotated, begunSearch, withCitations } from './responses-search.ts';

const lifecycle = new Set(['response.created', 'response.in_progress', 'response.queued']);
const ends = new Set(['response.completed', 'response.incomplete', 'response.failed']);

export class ResponsesFrames implements Frames {
  readonly #talk: ResponsesRun;
  #number = 0;
  /** Places in the run's output, by place in the turn's; undefined: a call of the gateway's own. */
  #places = new Map<unknown, number | undefined>();
  #hasBegun = false;
  #answer: JsonObject | undefined;

  constructor(talk: ResponsesRun) {
    this.#talk = talk;
  }

  frame(_event: string | undefined, data: JsonObject | undefined): string {
    if (data === undefined) return '';
    const type = String(data['type']);
    if (lifecycle.has(type)) return this.#hasBegun ? '' : this.#event(this.#begun(data));
    const before = this.#prelude();
    if (ends.has(type)) return before + this.#ended(type, data['response']);
    if (type === 'error') return before + this.#event(data);
    if (!('output_index' in data)) return before + this.#event(data);
    const place = this.#placeOf(type, data);
    if (place === undefined) return before;
    const cited = annotated({ ...data, output_index: place }, this.#talk.sources);
    return before + cited.map((event) => this.#event(event)).join('');
  }

  answer(): JsonObject | undefined {
    const answer = this.#answer;
    this.#answer = undefined;
    this.#places = new Map();
    return answer;
  }

  called(use: ToolUse): string {
    const { offered } = this.#talk.opening;
    if (offered.isSearch(use.name)) return this.#searching(begunSearch(use));
    if (offered.isFiles(use.name)) return this.#searching(begunFiles(use));
    const item = {
      ...callItem({ ...use, output: '', isError: false }, this.#talk.opening),
      status: 'in_progress',
      output: null,
    };
    const place = this.#talk.output.push(item) - 1;
    const at = { output_index: place, item_id: item['id' as keyof typeof item] };
    return (
      this.#event({ type: 'response.output_item.added', output_index: place, item: { ...item, arguments: '' } }) +
      this.#event({ type: 'response.mcp_call.in_progress', ...at }) +
      this.#event({ type: 'response.mcp_call_arguments.delta', ...at, delta: use.arguments }) +
      this.#event({ type: 'response.mcp_call_arguments.done', ...at, arguments: use.arguments })
    );
  }

  done(done: ToolDone): string {
    const item = callItem(done, this.#talk.opening);
    const place = this.#talk.output.findIndex(({ id }) => id === item['id']);
    this.#talk.output[place] = item;
    const end = done.isError ? 'response.mcp_call.failed' : 'response.mcp_call.completed';
    const type = item['type'] === 'mcp_call' ? end : `response.${String(item['type'])}.completed`;
    return (
      this.#event({ type, output_index: place, item_id: item['id'] }) +
      this.#event({ type: 'response.output_item.done', output_index: place, item })
    );
  }

  #searching(item: JsonObject): string {
    const place = this.#talk.output.push(item) - 1;
    const at = { output_index: place, item_id: item['id'] };
    return (
      this.#event({ type: 'response.output_item.added', output_index: place, item }) +
      this.#event({ type: `response.${String(item['type'])}.in_progress`, ...at }) +
      this.#event({ type: `response.${String(item['type'])}.searching`, ...at })
    );
  }

  asked(calls: readonly ToolUse[]): string {
    return calls.map((use) => this.#item(this.#talk.output.push(approvalItem(use, this.#talk.opening)) - 1)).join('');
  }

  end(end: End): string {
    const response = this.#talk.whole(end);
    return this.#event({ type: `response.${String(response['status'])}`, response });
  }

  #begun(data: JsonObject): JsonObject {
    const response = isObject(data['response']) ? data['response'] : {};
    return { ...data, response: { ...this.#talk.echo(response), output: [] } };
  }

  /** What the run has done before its first turn. */
  #prelude(): string {
    if (this.#hasBegun) return '';
    this.#hasBegun = true;
    return this.#talk.output.map((_, place) => this.#item(place)).join('');
  }

  #item(place: number): string {
    const item = this.#talk.output[place]!;
    const at = { output_index: place, item_id: item['id'] };
    const isList = item['type'] === 'mcp_list_tools';
    return (
      this.#event({
        type: 'response.output_item.added',
        output_index: place,
        item: isList ? { ...item, tools: [] } : item,
      }) +
      (isList ? this.#event({ type: 'response.mcp_list_tools.in_progress', ...at }) : '') +
      (isList ? this.#event({ type: 'response.mcp_list_tools.completed', ...at }) : '') +
      this.#event({ type: 'response.output_item.done', output_index: place, item })
    );
  }

  #ended(type: string, response: unknown): string {
    const answer = isObject(response) ? response : {};
    if (type !== 'response.failed') {
      this.#answer = answer;
      return '';
    }
    return this.#event({ type, response: { ...this.#talk.echo(answer), output: this.#talk.output } });
  }

  /** undefined: the event is one of a call that the gateway makes. */
  #placeOf(type: string, { output_index: index, item }: JsonObject): number | undefined {
    const isKnown = this.#places.has(index);
    if (!isKnown && isObject(item))
      this.#places.set(index, this.#talk.isOwn(item) ? undefined : this.#talk.output.push(item) - 1);
    const place = this.#places.get(index);
    if (place !== undefined && type === 'response.output_item.done' && isObject(item))
      this.#talk.output[place] = withCitations(item, this.#talk.sources);
    return place;
  }

  #event(data: JsonObject): string {
    const event = { ...data, sequence_number: this.#number++ };
    return formatFrame(JSON.stringify(event), String(data['type']));
  }
}

/** Encodes a script as output items of the Responses protocol, with each item's events. Pure. Form from recordings. */
import { listOf } from '../json.ts';
import type { Turn } from '../protocol.ts';
import type { Choice, ToolCall } from '../script/script.ts';
import { piecesOf } from '../script/tokens.ts';
import { seal } from '../seal.ts';

/** An event without its number: `fields` is JSON members without braces. */
export interface ItemEvent {
  readonly type: string;
  readonly fields: string;
  readonly text?: number;
  readonly reasoning?: number;
  readonly chunk?: true;
}

export interface Item {
  /** The finished item as JSON. */
  readonly json: string;
  /** The events between `output_item.added` and `output_item.done`, both included. */
  events(index: number): Iterable<ItemEvent>;
}

export function itemsOf(turn: Turn): Item[] {
  const choice = turn.script.choices[0]!;
  if (turn.modelRequest.compact) return [compactionItem(turn, choice)];
  const items: Item[] = [];
  if (choice.reasoning !== '') items.push(reasoningItem(turn, choice.reasoning));
  if (choice.calls.length === 0 && (choice.text !== '' || choice.finish !== 'length'))
    items.push(messageItem(turn, choice));
  for (const [at, call] of choice.calls.entries()) items.push(callItem(turn, call, at));
  return items;
}

const padding = 'sandboxpadding00';

/** Random padding on the original; here only as long as it hides the piece's length. */
function obfuscation(turn: Turn, piece: string): string {
  const options = turn.body['stream_options'] as { include_obfuscation?: boolean } | null | undefined;
  return options?.include_obfuscation === false ? '' : `,"obfuscation":"${padding.slice(piece.length % 16)}"`;
}

function added(index: number, json: string): ItemEvent {
  return { type: 'response.output_item.added', fields: `"output_index":${index},"item":${json}` };
}

function done(index: number, json: string): ItemEvent {
  return { type: 'response.output_item.done', fields: `"output_index":${index},"item":${json}` };
}

export function compactionItem(turn: Turn, choice: Choice): Item {
  const json = `{"id":"cmp_${turn.id}","type":"compaction","encrypted_content":"${seal(choice.text)}"}`;
  return {
    json,
    *events(index) {
      yield { ...added(index, json), text: choice.text.length, reasoning: choice.reasoning.length };
      yield { ...done(index, json), chunk: true };
    },
  };
}

function reasoningItem(turn: Turn, reasoning: string): Item {
  const id = `rs_${turn.id}`;
  const wanted = listOf(turn.body['include']).includes('reasoning.encrypted_content');
  const sealed = wanted ? `,"encrypted_content":"${seal(reasoning)}"` : '';
  const shown = turn.modelRequest.thoughtsShown || turn.modelRequest.directives.thinking === true;
  const part = `{"type":"summary_text","text":${JSON.stringify(reasoning)}}`;
  const open = `{"id":"${id}","type":"reasoning"${sealed},"content":[],"summary":`;
  const json = `${open}[${shown ? part : ''}]}`;
  return {
    json,
    *events(index) {
      yield { ...added(index, `${open}[]}`), ...(shown ? {} : { reasoning: reasoning.length }) };
      if (shown) yield* summaryEvents(turn, id, index, reasoning, part);
      yield done(index, json);
    },
  };
}

function* summaryEvents(turn: Turn, id: string, index: number, text: string, part: string): Generator<ItemEvent> {
  const place = `"item_id":"${id}","output_index":${index},"summary_index":0`;
  const prefix = 'response.reasoning_summary';
  yield { type: `${prefix}_part.added`, fields: `${place},"part":{"type":"summary_text","text":""}` };
  for (const piece of piecesOf(text, turn.modelRequest.directives.chunks)) {
    const fields = `${place},"delta":${JSON.stringify(piece)}${obfuscation(turn, piece)}`;
    yield { type: `${prefix}_text.delta`, fields, reasoning: piece.length, chunk: true };
  }
  yield { type: `${prefix}_text.done`, fields: `${place},"text":${JSON.stringify(text)}` };
  yield { type: `${prefix}_part.done`, fields: `${place},"part":${part}` };
}

function messageItem(turn: Turn, choice: Choice): Item {
  const id = `msg_${turn.id}`;
  const refused = choice.finish === 'refusal';
  const status = choice.finish === 'length' ? 'incomplete' : 'completed';
  const partOf = (text: string) =>
    refused
      ? `{"type":"refusal","refusal":${text}}`
      : `{"type":"output_text","annotations":[],"logprobs":[],"text":${text}}`;
  const part = partOf(JSON.stringify(choice.text));
  const item = (state: string, content: string) =>
    `{"id":"${id}","type":"message","status":"${state}","content":[${content}],"phase":"final_answer","role":"assistant"}`;
  const json = item(status, part);
  return {
    json,
    *events(index) {
      yield added(index, item('in_progress', ''));
      const place = `"item_id":"${id}","output_index":${index},"content_index":0`;
      yield { type: 'response.content_part.added', fields: `${place},"part":${partOf('""')}` };
      const kind = refused ? 'response.refusal' : 'response.output_text';
      const logprobs = refused ? '' : ',"logprobs":[]';
      for (const piece of piecesOf(choice.text, turn.modelRequest.directives.chunks)) {
        const fields = `${place},"delta":${JSON.stringify(piece)}${logprobs}${obfuscation(turn, piece)}`;
        yield { type: `${kind}.delta`, fields, text: piece.length, chunk: true };
      }
      const whole = `"${refused ? 'refusal' : 'text'}":${JSON.stringify(choice.text)}`;
      yield { type: `${kind}.done`, fields: `${place},${whole}${logprobs}` };
      yield { type: 'response.content_part.done', fields: `${place},"part":${part}` };
      yield done(index, json);
    },
  };
}

function callItem(turn: Turn, call: ToolCall, at: number): Item {
  const custom = call.kind === 'custom';
  const number = String(at).padStart(2, '0');
  const id = `${custom ? 'ctc' : 'fc'}_${turn.id}${number}`;
  const [type, member] = custom ? ['custom_tool_call', 'input'] : ['function_call', 'arguments'];
  const namespace = call.namespace === undefined ? '' : `,"namespace":${JSON.stringify(call.namespace)}`;
  const item = (status: string, input: string) =>
    `{"id":"${id}","type":"${type}","status":"${status}","${member}":${JSON.stringify(input)},"call_id":"call_${turn.id}0${number}","name":${JSON.stringify(call.name)}${namespace}}`;
  const json = item('completed', call.input);
  return {
    json,
    *events(index) {
      yield { ...added(index, item('in_progress', '')), text: call.name.length };
      const place = `"item_id":"${id}","output_index":${index}`;
      const prefix = custom ? 'response.custom_tool_call_input' : 'response.function_call_arguments';
      for (const piece of piecesOf(call.input, turn.modelRequest.directives.chunks)) {
        const fields = `${place},"delta":${JSON.stringify(piece)}${obfuscation(turn, piece)}`;
        yield { type: `${prefix}.delta`, fields, text: piece.length, chunk: true };
      }
      yield { type: `${prefix}.done`, fields: `${place},"${member}":${JSON.stringify(call.input)}` };
      yield done(index, json);
    },
  };
}

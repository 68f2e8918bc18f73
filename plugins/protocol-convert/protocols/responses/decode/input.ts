/** Decodes a client's input items into turns, tools and settings. Throws invalid_request that names the field. */

import { GatewayError } from '../../../../../core/contract/errors.ts';
import { table } from '../../../../../core/contract/table.ts';
import { type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import type { MediaPart, OpaqueState, Part, TextPart, Tool, Turn } from '../../../../common/canonical/prompt.ts';
import { bytesSource } from '../../../../common/encoding/media.ts';
import { JsonTexts } from '../../../encoding/json-text.ts';
import { invalid } from '../../../request/checks.ts';
import { ownerOf } from '../opaque-state.ts';
import { foundText, toolSearch } from '../tool-search.ts';
import { decodeContent, decodeCustomOutput, decodeOutput } from './content.ts';
import { searchOf } from './details.ts';
import { decodeTools } from './tools.ts';

/** Maker of opaque states that are the gateway's own summaries of a conversation. */
export const compactionMaker = 'gateway:compaction';

/** A turn that may still grow. */
interface OpenTurn {
  readonly role: Turn['role'];
  readonly parts: Part[];
  phase?: string;
}

/** Calls of hosted tools that clients run: by item type, the member with the action. */
const clientCalls: Readonly<Record<string, string>> = table({
  local_shell_call: 'action',
  shell_call: 'action',
  apply_patch_call: 'operation',
  computer_call: 'action',
  tool_search_call: 'arguments',
});
const clientOutputs = new Set([
  'local_shell_call_output',
  'shell_call_output',
  'apply_patch_call_output',
  'computer_call_output',
]);

const looseTypes = new Set(['input_text', 'input_image', 'input_file']);

export class InputDecoder {
  readonly turns: OpenTurn[] = [];
  /** Tools that input items declare. */
  readonly tools: Tool[] = [];
  /** Changes from `configuration_update` items, by member of the request. */
  readonly updates: Record<string, JsonObject> = {};
  readonly #context: DecodeContext;
  readonly #outputs = new JsonTexts();
  readonly #called = new Set<string>();
  /** The turn of the content just before that has no message around it. */
  #loose: Part[] | undefined;
  /** The first result, since the model's last item, of a call that there is not. */
  #stray: { readonly callId: string; readonly field: string } | undefined;

  constructor(context: DecodeContext) {
    this.#context = context;
  }

  /** `field`: `input` or `instructions`; plain strings in it get the role `role`. */
  decode(value: unknown, field: string, role: 'user' | 'system'): void {
    if (value === undefined || value === null) return;
    if (typeof value === 'string') {
      this.#turn(role).push({ kind: 'text', text: value });
      return;
    }
    if (!Array.isArray(value)) throw invalid(`The field "${field}" must be a string or a list.`, field);
    const kept = field === 'input' ? (this.#context.keptItems ?? 0) : 0;
    for (const [index, item] of (value as readonly unknown[]).entries()) {
      const name = index < kept ? 'previous_response_id' : `${field}[${index - kept}]`;
      if (typeof item === 'string') this.#turn(role).push({ kind: 'text', text: item });
      else this.#item(requireObject(item, name), name, role);
    }
  }

  /** Throws invalid_request for a new result of a call that there is not: the model would go on with its own answer. */
  requireCalls(): void {
    if (this.#stray === undefined) return;
    const { callId, field } = this.#stray;
    throw invalid(`No tool call found for the output with call_id ${callId.slice(0, 200)}.`, field);
  }

  #item(item: JsonObject, field: string, role: 'user' | 'system'): void {
    const type = textOf(item['type']) ?? 'message';
    if (!looseTypes.has(type)) this.#loose = undefined;
    switch (type) {
      case 'message':
        return void this.#message(item, field);
      case 'input_text':
      case 'input_image':
      case 'input_file':
        this.#loose ??= this.#turn(role);
        return void this.#loose.push(...decodeContent([item], field));
      case 'function_call':
      case 'custom_tool_call':
        return void this.#call(item, field, type === 'custom_tool_call');
      case 'function_call_output':
        return void this.#result(item, field, decodeOutput(item['output'], `${field}.output`), false);
      case 'custom_tool_call_output':
        return void this.#result(
          item,
          field,
          decodeCustomOutput(item['output'], `${field}.output`, this.#outputs),
          true,
        );
      case 'reasoning':
        return void this.#reasoning(item);
      case 'web_search_call':
        return void this.#assistant().parts.push(searchOf(item));
      case 'image_generation_call':
        return void this.#image(item);
      default:
        return void this.#other(type, item, field);
    }
  }

  /** Items about the request itself, and items of hosted tools. */
  #other(type: string, item: JsonObject, field: string): void {
    switch (type) {
      case 'item_reference':
        throw new GatewayError('invalid_request', `The field "${field}" refers to an item that is not kept here.`, {
          field,
          code: 'previous_response_not_found',
        });
      case 'additional_tools':
        return void this.tools.push(...decodeTools(item['tools'], `${field}.tools`));
      case 'tool_search_output':
        return void this.#found(item, field);
      case 'configuration_update':
        return void this.#update(item);
      case 'compaction':
      case 'compaction_summary':
        return void this.#compaction(item, field);
      case 'compaction_trigger':
        throw invalid(`The field "${field}" must be the last item of the input.`, field);
    }
    const input = clientCalls[type];
    if (input !== undefined) return void this.#clientCall(type, item, input);
    if (clientOutputs.has(type)) return void this.#clientOutput(item, field);
    this.#context.dropped.dropField(type);
  }

  #message(item: JsonObject, field: string): void {
    const parts = decodeContent(item['content'], `${field}.content`);
    switch (item['role']) {
      case 'system':
      case 'developer':
        return void this.#turn('system').push(...parts);
      case 'user':
        return void this.#turn('user').push(...parts);
      case 'assistant':
        return void this.#assistant(textOf(item['phase'])).parts.push(...parts);
      default:
        throw invalid(`The field "${field}.role" must be one of user, assistant, system, developer.`, `${field}.role`);
    }
  }

  #call(item: JsonObject, field: string, custom: boolean): void {
    const name = textOf(item['name']);
    if (name === undefined) throw invalid(`The field "${field}.name" is missing.`, `${field}.name`);
    const namespace = textOf(item['namespace']);
    const member = custom ? 'input' : 'arguments';
    const input = item[member] ?? '';
    if (typeof input !== 'string')
      throw invalid(`The field "${field}.${member}" must be a string.`, `${field}.${member}`);
    const id = callIdOf(item, field);
    this.#assistant().parts.push({
      kind: 'tool-call',
      id,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      input: custom || input !== '' ? input : '{}',
      ...(custom ? { custom } : {}),
    });
    this.#called.add(id);
  }

  #result(item: JsonObject, field: string, parts: (TextPart | MediaPart)[], custom: boolean): void {
    this.#results().push({
      kind: 'tool-result',
      callId: this.#answered(callIdOf(item, field), field),
      parts,
      ...(custom ? { custom } : {}),
    });
  }

  /** Only opaque state that this gateway sealed can be returned; of other vendors' reasoning the summary stays. */
  #reasoning(item: JsonObject): void {
    const sealed = textOf(item['encrypted_content']);
    const opaqueState = sealed === undefined ? undefined : this.#context.open(sealed);
    const owner = opaqueState === undefined ? undefined : ownerOf(opaqueState.value);
    if (opaqueState !== undefined && owner !== undefined && owner.of !== 'reasoning') {
      const callId = owner.of === 'call' ? owner.callId : undefined;
      this.#attach({ maker: opaqueState.maker, value: owner.value }, callId);
      return;
    }
    const summary = textsOf(item['summary']);
    const text = (summary.length > 0 ? summary : textsOf(item['content'])).join('\n\n');
    if (text === '' && opaqueState === undefined) {
      if (sealed !== undefined) this.#context.onForeignReasoning?.();
      return;
    }
    this.#assistant().parts.push({
      kind: 'reasoning',
      text,
      ...(opaqueState === undefined
        ? {}
        : { opaqueState: { ...opaqueState, value: owner?.value ?? opaqueState.value } }),
      ...(owner?.of === 'reasoning' && owner.redacted === true ? { redacted: true } : {}),
    });
  }

  /** Attaches an opaque state to the call with this id, or to the last text; without either it is useless. */
  #attach(opaqueState: OpaqueState, callId: string | undefined): void {
    const parts = this.turns.at(-1)?.parts ?? [];
    const index = parts.findLastIndex((part) =>
      callId === undefined ? part.kind === 'text' : part.kind === 'tool-call' && part.id === callId,
    );
    const part = parts[index];
    if (part?.kind === 'text' || part?.kind === 'tool-call') parts[index] = { ...part, opaqueState };
  }

  #image(item: JsonObject): void {
    const base64 = textOf(item['result']);
    if (base64 === undefined) return;
    const source = bytesSource(base64, `image/${textOf(item['output_format']) ?? 'png'}`);
    this.#assistant().parts.push({ kind: 'image', source });
  }

  /** The tools that a client's tool search found, which are callable from now on. */
  #found(item: JsonObject, field: string): void {
    const tools = decodeTools(item['tools'], `${field}.tools`);
    this.tools.push(...tools);
    const callId = textOf(item['call_id']);
    if (callId === undefined) return;
    this.#results().push({
      kind: 'tool-result',
      callId: this.#answered(callId, field),
      parts: [{ kind: 'text', text: foundText(item['tools']) }],
    });
  }

  #answered(callId: string, field: string): string {
    if (!this.#called.has(callId)) this.#stray ??= { callId, field: `${field}.call_id` };
    return callId;
  }

  #update(item: JsonObject): void {
    for (const member of ['reasoning', 'text']) {
      const update = objectOf(item[member]);
      if (update !== undefined) this.updates[member] = { ...this.updates[member], ...update };
    }
  }

  #compaction(item: JsonObject, field: string): void {
    const opaqueState = this.#context.open(textOf(item['encrypted_content']) ?? '');
    if (opaqueState?.maker !== compactionMaker) {
      const name = `${field}.encrypted_content`;
      throw invalid(`The field "${name}" was not made by this gateway for this account, or too long ago.`, name);
    }
    this.#turn('system').push({ kind: 'text', text: opaqueState.value });
  }

  #clientCall(type: string, item: JsonObject, member: string): void {
    const id = textOf(item['call_id']) ?? (type === 'local_shell_call' ? textOf(item['id']) : undefined);
    // An item that the vendor ran itself has no call id, and no result follows.
    if (id === undefined) return void this.#context.dropped.dropField(type);
    const value = item[member];
    const input = typeof value === 'string' ? value : JSON.stringify(value ?? {});
    const tool = type === 'tool_search_call' ? toolSearch : { name: type.slice(0, -'_call'.length) };
    this.#assistant().parts.push({ kind: 'tool-call', id, ...tool, input });
    this.#called.add(id);
  }

  #clientOutput(item: JsonObject, field: string): void {
    const callId = textOf(item['call_id']) ?? textOf(item['id']);
    if (callId === undefined) return;
    const { output } = item;
    const isPicture = objectOf(output)?.['type'] === 'computer_screenshot';
    const parts = isPicture
      ? decodeOutput(output, `${field}.output`)
      : [{ kind: 'text' as const, text: typeof output === 'string' ? output : JSON.stringify(output ?? '') }];
    this.#results().push({ kind: 'tool-result', callId: this.#answered(callId, field), parts });
  }

  #turn(role: 'user' | 'system'): Part[] {
    const parts: Part[] = [];
    this.turns.push({ role, parts });
    return parts;
  }

  /** The current assistant turn, or a new one if the phase differs. */
  #assistant(phase?: string): OpenTurn {
    this.#stray = undefined;
    const last = this.turns.at(-1);
    const isOpen = last?.role === 'assistant';
    const fits = isOpen && (phase === undefined || phase === last.phase || !last.parts.some(isSaid));
    // Trailing reasoning belongs to the text that follows it.
    const turn: OpenTurn = fits ? last : { role: 'assistant', parts: isOpen ? trailingThoughts(last.parts) : [] };
    if (!fits) this.turns.push(turn);
    if (phase !== undefined) turn.phase = phase;
    return turn;
  }

  /** The current user turn of results, or a new one. */
  #results(): Part[] {
    const last = this.turns.at(-1);
    // A turn has either messages or tool results, never both, so its first part shows which.
    const isOpen = last?.role === 'user' && last.parts[0]?.kind === 'tool-result';
    return isOpen ? last.parts : this.#turn('user');
  }
}

/** Removes the reasoning from the end of these parts and returns it. */
function trailingThoughts(parts: Part[]): Part[] {
  return parts.splice(parts.findLastIndex(({ kind }) => kind !== 'reasoning') + 1);
}

function isSaid({ kind }: Part): boolean {
  return kind === 'text' || kind === 'refusal';
}

function textsOf(parts: unknown): string[] {
  return listOf(parts).flatMap((part) => textOf(objectOf(part)?.['text']) ?? []);
}

function callIdOf(item: JsonObject, field: string): string {
  const id = textOf(item['call_id']) ?? textOf(item['id']);
  if (id === undefined) throw invalid(`The field "${field}.call_id" is missing.`, `${field}.call_id`);
  return id;
}

function requireObject(value: unknown, field: string): JsonObject {
  const item = objectOf(value);
  if (item === undefined) throw invalid(`The field "${field}" must be an object.`, field);
  return item;
}

/** Reads a client's input items into turns, and the tools and settings that stand among them. Throws invalid_request that names the field. */
import { GatewayError } from '../../../../core/errors.ts';
import type { Keepsake, MediaPart, Part, TextPart, Tool, Turn } from '../../canon.ts';
import { invalid } from '../../checks.ts';
import type { DecodeContext } from '../../codec.ts';
import { type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import { bytesSource } from '../../wording/media.ts';
import { ownerOf } from './keepsakes.ts';
import { readContent, readCustomOutput, readOutput } from './read-content.ts';
import { searchOf } from './read-details.ts';
import { readTools } from './read-tools.ts';

/** Maker of the keepsakes that are the gateway's own summaries of a conversation. */
export const compactionMaker = 'gateway:compaction';

/** A turn that may still grow. */
interface OpenTurn {
  readonly role: Turn['role'];
  readonly parts: Part[];
  phase?: string;
}

/** Calls that clients carry out for tools of the vendor's own: by item type, the member that says what to do. */
const clientCalls: Readonly<Record<string, string>> = {
  local_shell_call: 'action',
  shell_call: 'action',
  apply_patch_call: 'operation',
  computer_call: 'action',
  tool_search_call: 'arguments',
};
const clientOutputs = new Set([
  'local_shell_call_output',
  'shell_call_output',
  'apply_patch_call_output',
  'computer_call_output',
]);

export class InputReader {
  readonly turns: OpenTurn[] = [];
  /** Tools that the items bring along. */
  readonly tools: Tool[] = [];
  /** What `configuration_update` items change, by member of the request. */
  readonly updates: Record<string, JsonObject> = {};
  readonly #context: DecodeContext;

  constructor(context: DecodeContext) {
    this.#context = context;
  }

  /** `field`: `input` or `instructions`; plain strings in it are said by `role`. */
  read(value: unknown, field: string, role: 'user' | 'system'): void {
    if (value === undefined || value === null) return;
    if (typeof value === 'string') {
      this.#turn(role).push({ kind: 'text', text: value });
      return;
    }
    if (!Array.isArray(value)) throw invalid(`The field "${field}" must be a string or a list.`, field);
    for (const [index, item] of (value as readonly unknown[]).entries()) {
      const name = `${field}[${index}]`;
      if (typeof item === 'string') this.#turn(role).push({ kind: 'text', text: item });
      else this.#item(requireObject(item, name), name, role);
    }
  }

  #item(item: JsonObject, field: string, role: 'user' | 'system'): void {
    const type = textOf(item['type']) ?? 'message';
    switch (type) {
      case 'message':
        return void this.#message(item, field);
      case 'input_text':
      case 'input_image':
      case 'input_file':
        return void this.#turn(role).push(...readContent([item], field));
      case 'function_call':
      case 'custom_tool_call':
        return void this.#call(item, field, type === 'custom_tool_call');
      case 'function_call_output':
        return void this.#result(item, field, readOutput(item['output'], `${field}.output`), false);
      case 'custom_tool_call_output':
        return void this.#result(item, field, readCustomOutput(item['output'], `${field}.output`), true);
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

  /** Items that say something about the request itself, and those of the vendor's own tools. */
  #other(type: string, item: JsonObject, field: string): void {
    switch (type) {
      case 'item_reference':
        throw new GatewayError('invalid_request', `The field "${field}" refers to an item that is not kept here.`, {
          field,
          code: 'previous_response_not_found',
        });
      case 'additional_tools':
        return void this.tools.push(...readTools(item['tools'], `${field}.tools`));
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
    this.#context.losses.dropField(type);
  }

  #message(item: JsonObject, field: string): void {
    const parts = readContent(item['content'], `${field}.content`);
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
    this.#assistant().parts.push({
      kind: 'tool-call',
      id: callIdOf(item, field),
      name,
      ...(namespace === undefined ? {} : { namespace }),
      input: custom || input !== '' ? input : '{}',
      ...(custom ? { custom } : {}),
    });
  }

  #result(item: JsonObject, field: string, parts: (TextPart | MediaPart)[], custom: boolean): void {
    this.#results().push({
      kind: 'tool-result',
      callId: callIdOf(item, field),
      parts,
      ...(custom ? { custom } : {}),
    });
  }

  /** Only what this gateway sealed can be given back; of other vendors' reasoning the summary stays. */
  #reasoning(item: JsonObject): void {
    const sealed = textOf(item['encrypted_content']);
    const keepsake = sealed === undefined ? undefined : this.#context.open(sealed);
    const owner = keepsake === undefined ? undefined : ownerOf(keepsake.value);
    if (keepsake !== undefined && owner !== undefined && owner.of !== 'reasoning') {
      const callId = owner.of === 'call' ? owner.callId : undefined;
      this.#attach({ maker: keepsake.maker, value: owner.value }, callId);
      return;
    }
    const summary = textsOf(item['summary']);
    const text = (summary.length > 0 ? summary : textsOf(item['content'])).join('\n\n');
    if (text === '' && keepsake === undefined) return;
    this.#assistant().parts.push({ kind: 'reasoning', text, ...(keepsake === undefined ? {} : { keepsake }) });
  }

  /** Gives a keepsake to the call of this id, or to the last text; there is none: nobody can want it. */
  #attach(keepsake: Keepsake, callId: string | undefined): void {
    const parts = this.turns.at(-1)?.parts ?? [];
    const index = parts.findLastIndex((part) =>
      callId === undefined ? part.kind === 'text' : part.kind === 'tool-call' && part.id === callId,
    );
    const part = parts[index];
    if (part?.kind === 'text' || part?.kind === 'tool-call') parts[index] = { ...part, keepsake };
  }

  #image(item: JsonObject): void {
    const base64 = textOf(item['result']);
    if (base64 === undefined) return;
    const source = bytesSource(base64, `image/${textOf(item['output_format']) ?? 'png'}`);
    this.#assistant().parts.push({ kind: 'image', source });
  }

  /** The tools that a search of the client's found may be called from now on. */
  #found(item: JsonObject, field: string): void {
    const tools = readTools(item['tools'], `${field}.tools`);
    this.tools.push(...tools);
    const callId = textOf(item['call_id']);
    if (callId === undefined) return;
    const names = tools.flatMap((tool) => (tool.kind === 'hosted' ? [] : [tool.name]));
    const text = names.length === 0 ? 'No tools were found.' : `Tools loaded: ${names.join(', ')}`;
    this.#results().push({ kind: 'tool-result', callId, parts: [{ kind: 'text', text }] });
  }

  #update(item: JsonObject): void {
    for (const member of ['reasoning', 'text']) {
      const update = objectOf(item[member]);
      if (update !== undefined) this.updates[member] = { ...this.updates[member], ...update };
    }
  }

  #compaction(item: JsonObject, field: string): void {
    const keepsake = this.#context.open(textOf(item['encrypted_content']) ?? '');
    if (keepsake?.maker !== compactionMaker) {
      const name = `${field}.encrypted_content`;
      throw invalid(`The field "${name}" was not made by this gateway for this account, or too long ago.`, name);
    }
    this.#turn('system').push({ kind: 'text', text: keepsake.value });
  }

  #clientCall(type: string, item: JsonObject, member: string): void {
    const id = textOf(item['call_id']) ?? (type === 'local_shell_call' ? textOf(item['id']) : undefined);
    // What the vendor ran itself has no call id: nothing answers it.
    if (id === undefined) return void this.#context.losses.dropField(type);
    const value = item[member];
    const input = typeof value === 'string' ? value : JSON.stringify(value ?? {});
    this.#assistant().parts.push({ kind: 'tool-call', id, name: type.slice(0, -'_call'.length), input });
  }

  #clientOutput(item: JsonObject, field: string): void {
    const callId = textOf(item['call_id']) ?? textOf(item['id']);
    if (callId === undefined) return;
    const { output } = item;
    const isPicture = objectOf(output)?.['type'] === 'computer_screenshot';
    const parts = isPicture
      ? readOutput(output, `${field}.output`)
      : [{ kind: 'text' as const, text: typeof output === 'string' ? output : JSON.stringify(output ?? '') }];
    this.#results().push({ kind: 'tool-result', callId, parts });
  }

  #turn(role: 'user' | 'system'): Part[] {
    const parts: Part[] = [];
    this.turns.push({ role, parts });
    return parts;
  }

  /** The assistant's turn that goes on, or a new one where it speaks in another phase. */
  #assistant(phase?: string): OpenTurn {
    const last = this.turns.at(-1);
    const isOpen = last?.role === 'assistant';
    const fits = isOpen && (phase === undefined || phase === last.phase || !last.parts.some(isSaid));
    // What it thought last belongs to what it says next.
    const turn: OpenTurn = fits ? last : { role: 'assistant', parts: isOpen ? trailingThoughts(last.parts) : [] };
    if (!fits) this.turns.push(turn);
    if (phase !== undefined) turn.phase = phase;
    return turn;
  }

  /** The user's turn of results that goes on, or a new one. */
  #results(): Part[] {
    const last = this.turns.at(-1);
    const isOpen =
      last?.role === 'user' && last.parts.length > 0 && last.parts.every(({ kind }) => kind === 'tool-result');
    return isOpen ? last.parts : this.#turn('user');
  }
}

/** Takes the reasoning off the end of these parts. */
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

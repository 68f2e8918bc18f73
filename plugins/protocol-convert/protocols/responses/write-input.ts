/** Words a conversation as instructions and input items for a responses upstream. */
import type {
  MediaPart,
  Part,
  ReasoningPart,
  SearchPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { callsById, pairedTurns, withoutEmpty } from '../../wording/history.ts';
import { legalCallId } from '../../wording/tool-ids.ts';
import type { ToolNamer } from '../../wording/tool-names.ts';
import { annotationOf, searchItem } from './output-items.ts';
import { ContentWriter } from './write-content.ts';

export interface WordedInput {
  readonly instructions: string | undefined;
  readonly input: readonly JsonObject[];
}

/** What leads the conversation is `instructions`; what the system says later stays where it was said. */
export function wordInput(turns: readonly Turn[], namer: ToolNamer, context: EncodeContext): WordedInput {
  const whole = withoutEmpty(turns);
  const content = new ContentWriter(context);
  const { leading, rest } = splitLeading(whole, content);
  const writer = new InputWriter(namer, context, content, rest);
  const paired = pairedTurns(rest);
  for (const [index, turn] of paired.entries()) writer.turn(turn, paired[index + 1]);
  return { instructions: leading.length === 0 ? undefined : leading.join('\n\n'), input: writer.items };
}

/** A request needs some input: where only the system speaks, it speaks there. */
function splitLeading(turns: readonly Turn[], content: ContentWriter): { leading: string[]; rest: readonly Turn[] } {
  const leading: string[] = [];
  let count = 0;
  for (const { role, parts } of turns) {
    const texts = parts.filter((part) => part.kind === 'text');
    const isPlain = texts.length === parts.length && !(content.takesMarks && texts.some(({ cache }) => cache));
    if (role !== 'system' || !isPlain) break;
    for (const text of texts) content.noteMark(text.cache);
    leading.push(texts.map(({ text }) => text).join('\n\n'));
    count++;
  }
  return count === turns.length ? { leading: [], rest: turns } : { leading, rest: turns.slice(count) };
}

class InputWriter {
  readonly items: JsonObject[] = [];
  readonly #namer: ToolNamer;
  readonly #context: EncodeContext;
  readonly #content: ContentWriter;
  /** Ids of calls of free-text tools: their results are told by another item. */
  readonly #customIds: ReadonlySet<string>;

  constructor(namer: ToolNamer, context: EncodeContext, content: ContentWriter, turns: readonly Turn[]) {
    this.#namer = namer;
    this.#context = context;
    this.#content = content;
    const calls = [...callsById(turns).values()];
    this.#customIds = new Set(calls.filter(({ custom }) => custom === true).map(({ id }) => id));
  }

  turn(turn: Turn, next: Turn | undefined): void {
    if (turn.name !== undefined) this.#context.losses.drop('names');
    if (turn.role === 'assistant') this.#assistant(turn, next?.role === 'assistant');
    else if (turn.role === 'user') this.#user(turn.parts);
    else this.#system(turn.parts);
  }

  /** Upstreams of this protocol know the role `developer`; some refuse `system`. */
  #system(parts: readonly Part[]): void {
    if (this.#context.traits.system_anywhere === false) {
      const words = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n');
      this.#say('user', [{ type: 'input_text', text: `<system-reminder>\n${words}\n</system-reminder>` }]);
    } else this.#say('developer', this.#content.parts(parts));
  }

  #user(parts: readonly Part[]): void {
    let said: Part[] = [];
    for (const part of parts) {
      if (part.kind !== 'tool-result') {
        said.push(part);
        continue;
      }
      this.#say('user', this.#content.parts(said));
      said = [];
      said.push(...this.#result(part));
    }
    this.#say('user', this.#content.parts(said));
  }

  /** Returns what the item cannot hold and the user must show. */
  #result(result: ToolResultPart): readonly MediaPart[] {
    const { output, rest } = this.#content.output(result);
    this.items.push({
      type:
        this.#customIds.has(result.callId) || result.custom === true
          ? 'custom_tool_call_output'
          : 'function_call_output',
      call_id: legalCallId(result.callId, 'any'),
      output,
    });
    this.#content.noteMark(result.cache);
    return rest;
  }

  #assistant({ parts, phase }: Turn, goesOn: boolean): void {
    let said: JsonObject[] = [];
    const images: MediaPart[] = [];
    const flush = () => {
      if (said.length > 0) this.items.push(assistantMessage(said, phase));
      said = [];
    };
    const lastIndex = parts.findLastIndex(({ kind }) => kind === 'text' || kind === 'refusal' || kind === 'tool-call');
    for (const [index, part] of parts.entries()) {
      if (part.kind === 'text') said.push(this.#outputText(part));
      else if (part.kind === 'refusal') said.push({ type: 'refusal', refusal: part.text });
      else {
        flush();
        // Upstreams refuse reasoning that nothing follows.
        if (part.kind === 'reasoning') this.#reasoning(part, goesOn || index < lastIndex);
        else if (part.kind === 'tool-call') this.#call(part);
        else if (part.kind === 'search') this.#search(part);
        else if (part.kind !== 'tool-result') images.push(part);
      }
    }
    flush();
    // What the model drew has no item that could be given back: the user shows it.
    this.#say('user', this.#content.parts(images));
  }

  #outputText({ text, citations = [], cache }: TextPart): JsonObject {
    this.#content.noteMark(cache);
    const annotations = citations.flatMap((citation) => {
      const { start, end, url } = citation;
      if (url === undefined || start === undefined || end === undefined) return [];
      return annotationOf(citation, { start, end }) ?? [];
    });
    if (annotations.length < citations.length) this.#context.losses.drop('searchHistory');
    return { type: 'output_text', text, annotations };
  }

  /** Only its maker can read it; without a keepsake nobody takes it. */
  #reasoning({ text, keepsake }: ReasoningPart, isFollowed: boolean): void {
    if (keepsake === undefined || keepsake.maker !== this.#context.maker || keepsake.value === '' || !isFollowed)
      return;
    const summary = text === '' ? [] : [{ type: 'summary_text', text }];
    this.items.push({ type: 'reasoning', summary, encrypted_content: keepsake.value });
  }

  #call({ id, name, namespace, input, custom, cache }: ToolCallPart): void {
    this.#content.noteMark(cache);
    const head = { call_id: legalCallId(id, 'any'), name: this.#namer.nameFor(name, namespace) };
    this.items.push(
      custom === true
        ? { type: 'custom_tool_call', ...head, input }
        : { type: 'function_call', ...head, arguments: input },
    );
  }

  /** An upstream takes back its own searches alone, known by their ids. */
  #search(search: SearchPart): void {
    if (search.id.startsWith('ws_')) this.items.push(searchItem(search.id, search, 'completed'));
    else this.#context.losses.drop('searchHistory');
  }

  #say(role: 'user' | 'developer', content: readonly JsonObject[]): void {
    if (content.length > 0) this.items.push({ type: 'message', role, content });
  }
}

function assistantMessage(content: readonly JsonObject[], phase: string | undefined): JsonObject {
  return { type: 'message', role: 'assistant', content, ...(phase === undefined ? {} : { phase }) };
}

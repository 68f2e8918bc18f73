/** The rules of a chat completion stream that applications rely on when they read its chunks by themselves. */
import type OpenAI from 'openai';
import { citationUnderstood, type MessageExtras, stopOf, usageUnderstood } from './chat-members.ts';
import { type Answered, Draft, noUsage, parsedArguments, rawFrames, rule, type Understood } from './understood.ts';

type Chunk = OpenAI.ChatCompletionChunk;
type Delta = OpenAI.ChatCompletionChunk.Choice.Delta &
  MessageExtras & { readonly annotations?: OpenAI.ChatCompletionMessage.Annotation[] };
interface Call {
  id: string;
  name: string;
  custom: boolean;
  text: string;
}

export class ChatGrammar {
  readonly #draft = new Draft();
  readonly #calls: Call[] = [];
  readonly #finished = new Map<number, string>();
  readonly #begun = new Set<number>();
  #id: string | undefined;
  #usage = noUsage;
  #usageReports = 0;

  constructor(answer: Answered) {
    const frames = rawFrames(answer);
    rule(frames.at(-1)?.data === '[DONE]', 'the stream does not end with [DONE]');
  }

  chunk(chunk: Chunk): void {
    rule(chunk.object === 'chat.completion.chunk', `a chunk calls itself ${chunk.object}`);
    rule(typeof chunk.created === 'number' && typeof chunk.model === 'string', 'a chunk lacks created or model');
    this.#id ??= chunk.id;
    rule(chunk.id === this.#id, `the id changes from ${this.#id} to ${chunk.id}`);
    rule(Array.isArray(chunk.choices), 'a chunk has no choices');
    for (const choice of chunk.choices) this.#choice(choice);
    if (chunk.usage == null) return;
    this.#usageReports++;
    this.#usage = usageUnderstood(chunk.usage);
  }

  finish(): Understood {
    rule(this.#begun.has(0), 'no chunk of the first choice came');
    for (const index of this.#begun) rule(this.#finished.has(index), `choice ${index} has no finish_reason`);
    rule(this.#usageReports <= 1, `usage is reported ${this.#usageReports} times`);
    const word = this.#finished.get(0);
    const isCut = word === 'length';
    for (const { id, name, custom, text } of this.#calls) {
      if (isCut && !isJson(text)) continue;
      this.#draft.tools.push({ id, name, arguments: custom ? text : parsedArguments(text) });
    }
    if (this.#calls.length > 0 && !isCut) rule(word === 'tool_calls', `an answer with calls ends with ${word}`);
    return this.#draft.finish(stopOf(word), word, this.#usage);
  }

  #choice({ index, delta, finish_reason: reason }: OpenAI.ChatCompletionChunk.Choice): void {
    rule(!this.#finished.has(index), `choice ${index} goes on after its finish_reason`);
    if (!this.#begun.has(index)) rule(delta.role === 'assistant', `choice ${index} does not begin with its role`);
    this.#begun.add(index);
    if (index === 0) this.#delta(delta);
    if (reason != null) this.#finished.set(index, reason);
  }

  #delta(delta: Delta): void {
    const draft = this.#draft;
    draft.text += delta.content ?? '';
    draft.refusal += delta.refusal ?? '';
    draft.reasoning += delta.reasoning_content ?? delta.reasoning ?? '';
    for (const image of delta.images ?? []) draft.images.push(image.image_url.url);
    for (const annotation of delta.annotations ?? []) draft.citations.push(citationUnderstood(annotation));
    for (const call of delta.tool_calls ?? []) this.#call(call);
  }

  #call(
    part: OpenAI.ChatCompletionChunk.Choice.Delta.ToolCall & { readonly custom?: { name?: string; input?: string } },
  ): void {
    rule(Number.isInteger(part.index), 'a tool call has no index');
    const more = part.function?.arguments ?? part.custom?.input ?? '';
    const known = this.#calls[part.index];
    if (known !== undefined) {
      rule(part.id == null || part.id === known.id, `the id of call ${part.index} changes`);
      known.text += more;
      return;
    }
    const name = part.function?.name ?? part.custom?.name ?? '';
    rule(part.index === this.#calls.length, `call ${part.index} comes after ${this.#calls.length} calls`);
    rule(Boolean(part.id) && name !== '', `call ${part.index} begins without id or name`);
    rule(part.type != null, `call ${part.index} begins without type`);
    rule(
      this.#calls.every(({ id }) => id !== part.id),
      `the id ${part.id} is given to two calls`,
    );
    this.#calls.push({ id: part.id!, name, custom: part.custom !== undefined, text: more });
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The official Anthropic client as a reader of messages: its accumulating stream, its plain stream, its whole answer. */
import Anthropic from '@anthropic-ai/sdk';
import { MessagesGrammar } from './grammar-messages.ts';
import { type Answered, Draft, fetchOf, rule, type StopUnderstood, type Understood } from './understood.ts';

const params: Anthropic.MessageCreateParamsNonStreaming = {
  model: 'MODEL',
  max_tokens: 1_000,
  messages: [{ role: 'user', content: 'Hello' }],
};

function client(answer: Answered): Anthropic {
  return new Anthropic({
    apiKey: 'key',
    baseURL: 'http://oracle.invalid',
    maxRetries: 0,
    fetch: fetchOf(answer),
    logLevel: 'off',
  });
}

/** `client.messages.stream(…).finalMessage()`; it needs the `event:` lines. */
export async function messagesAccumulated(answer: Answered): Promise<Understood> {
  return messageUnderstood(await client(answer).messages.stream(params).finalMessage());
}

/** `client.messages.create({ stream: true })`, each event held against the protocol's rules. */
export async function messagesIterated(answer: Answered): Promise<Understood> {
  const stream = await client(answer).messages.create({ ...params, stream: true });
  const grammar = new MessagesGrammar(answer);
  for await (const event of stream) grammar.event(event);
  return messageUnderstood(grammar.finish());
}

/** `client.messages.create()`. */
export async function messagesWhole(answer: Answered): Promise<Understood> {
  return messageUnderstood(await client(answer).messages.create(params));
}

function messageUnderstood(message: Anthropic.Message): Understood {
  rule(message.type === 'message' && message.role === 'assistant', 'the answer is no message of the assistant');
  const draft = new Draft();
  for (const block of message.content) blockUnderstood(block, draft);
  const { usage, stop_reason: word } = message;
  const read = usage.cache_read_input_tokens ?? undefined;
  const written = usage.cache_creation_input_tokens ?? undefined;
  return draft.finish(stopOf(word), word ?? undefined, {
    input: usage.input_tokens + (read ?? 0) + (written ?? 0),
    output: usage.output_tokens,
    cacheRead: read,
    cacheWrite: written,
    reasoning: usage.output_tokens_details?.thinking_tokens,
  });
}

function blockUnderstood(block: Anthropic.ContentBlock, draft: Draft): void {
  if (block.type === 'thinking') draft.reasoning += block.thinking;
  else if (block.type === 'tool_use') {
    rule(typeof block.input === 'object' && block.input !== null, `the input of ${block.name} is no object`);
    draft.tools.push({ id: block.id, name: block.name, arguments: block.input });
  } else if (block.type === 'text') {
    draft.text += block.text;
    for (const citation of block.citations ?? []) {
      const source = citation as { url?: string; title?: string | null; cited_text?: string };
      draft.citations.push({ url: source.url, title: source.title ?? undefined, quote: source.cited_text });
    }
  }
}

const stops: Readonly<Record<string, StopUnderstood>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool-calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refusal',
  pause_turn: 'pause',
};

function stopOf(word: string | null): StopUnderstood | undefined {
  return word === null ? undefined : (stops[word] ?? 'other');
}

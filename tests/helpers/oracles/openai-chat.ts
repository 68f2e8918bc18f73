/** The official OpenAI client as a reader of chat completions: its accumulating stream, its plain stream, its whole answer. */
import OpenAI from 'openai';
import { citationUnderstood, type MessageExtras, stopOf, usageUnderstood } from './chat-members.ts';
import { ChatGrammar } from './grammar-chat.ts';
import { type Answered, Draft, fetchOf, parsedArguments, type Understood } from './understood.ts';

const params = {
  model: 'MODEL',
  messages: [{ role: 'user', content: 'Hello' }],
} satisfies OpenAI.ChatCompletionCreateParamsNonStreaming;

export function openaiClient(answer: Answered): OpenAI {
  return new OpenAI({
    apiKey: 'key',
    baseURL: 'http://oracle.invalid/v1',
    maxRetries: 0,
    fetch: fetchOf(answer),
    logLevel: 'off',
  });
}

/** `client.chat.completions.stream(…).finalChatCompletion()`. */
export async function chatAccumulated(answer: Answered): Promise<Understood> {
  const stream = openaiClient(answer).chat.completions.stream(params);
  // The client keeps only the last piece of unknown members: applications add them up by themselves.
  let reasoning = '';
  stream.on('chunk', ({ choices }) => {
    const delta: MessageExtras | undefined = choices.find(({ index }) => index === 0)?.delta as
      | MessageExtras
      | undefined;
    reasoning += delta?.reasoning_content ?? delta?.reasoning ?? '';
  });
  return { ...completionUnderstood(await stream.finalChatCompletion()), reasoning };
}

/** `client.chat.completions.create({ stream: true })`, each chunk held against the protocol's rules. */
export async function chatIterated(answer: Answered): Promise<Understood> {
  const stream = await openaiClient(answer).chat.completions.create({ ...params, stream: true });
  const grammar = new ChatGrammar(answer);
  for await (const chunk of stream) grammar.chunk(chunk);
  return grammar.finish();
}

/** `client.chat.completions.create()`. */
export async function chatWhole(answer: Answered): Promise<Understood> {
  return completionUnderstood(await openaiClient(answer).chat.completions.create(params));
}

function completionUnderstood({ choices, usage }: OpenAI.ChatCompletion): Understood {
  const choice = choices[0];
  if (choice === undefined) throw new Error('the answer holds no choice');
  const message = choice.message as typeof choice.message & MessageExtras;
  const draft = new Draft();
  draft.text = message.content ?? '';
  draft.refusal = message.refusal ?? '';
  draft.reasoning = message.reasoning_content ?? message.reasoning ?? '';
  draft.images = (message.images ?? []).map(({ image_url }) => image_url.url);
  draft.tools = (message.tool_calls ?? []).map(toolUnderstood);
  draft.citations = (message.annotations ?? []).map(citationUnderstood);
  return draft.finish(stopOf(choice.finish_reason), choice.finish_reason, usageUnderstood(usage));
}

function toolUnderstood(call: OpenAI.ChatCompletionMessageToolCall): Understood['tools'][number] {
  return call.type === 'custom'
    ? { id: call.id, name: call.custom.name, arguments: call.custom.input }
    : { id: call.id, name: call.function.name, arguments: parsedArguments(call.function.arguments) };
}

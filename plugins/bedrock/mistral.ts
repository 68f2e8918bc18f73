/** Mistral by InvokeModel: messages with tools, and for the first models one text with marks around instructions. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../core/json/json.ts';
import type { EncodeContext, EncodedRequest } from '../common/canonical/codec.ts';
import type { Prompt } from '../common/canonical/prompt.ts';
import { legalCallId } from '../common/encoding/tool-ids.ts';
import { completions } from './completions.ts';
import { invokePath } from './invoke.ts';
import { plainRequest, textOfBlocks, textOfResult } from './plain.ts';

export const mistral = completions('bedrock-mistral', encodeMessages, ['image']);
export const mistralText = completions('bedrock-mistral-text', encodeText);

/** The vendor refuses more stop texts; the gateway matches the others itself. */
const maxStops = 10;

function encodeText(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const { system, messages, maxTokens, temperature, topP, stop, responseMapping } = plainRequest(prompt, context);
  const turns = messages.map(({ role, content }, index) => {
    // The format has no system role: the text begins the first instruction.
    const text = withoutMarks(textOfBlocks(index === 0 ? [...system, ...content] : content));
    return role === 'assistant' ? ` ${text}</s>` : `[INST] ${text} [/INST]`;
  });
  const ownStops = stop.slice(maxStops);
  return {
    path: invokePath(context.target.model, context.stream),
    body: {
      prompt: `<s>${turns.join('')}`,
      ...settingsOf(maxTokens, temperature, topP),
      ...(stop.length === 0 ? {} : { stop: stop.slice(0, maxStops) }),
    },
    responseMapping: { ...responseMapping, ...(ownStops.length === 0 ? {} : { stop: ownStops }) },
  };
}

/** A mark in a client's text would end its instruction and begin an answer of the model. */
function withoutMarks(text: string): string {
  return text.replaceAll(/([<[])(?=\/?(?:s>|INST\]))/g, '$1 ');
}

function settingsOf(maxTokens: unknown, temperature: unknown, topP: unknown): JsonObject {
  return {
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
  };
}

function encodeMessages(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const inputs = (context.traits.inputs ?? ['image']).filter((kind) => kind === 'image');
  const request = plainRequest(prompt, context, inputs);
  const { system, maxTokens, temperature, topP, stop, responseMapping } = request;
  const messages = request.messages.flatMap(({ role, content }) =>
    role === 'assistant' ? assistantMessage(content) : userMessages(content),
  );
  return {
    path: invokePath(context.target.model, context.stream),
    body: {
      messages: [...(system.length === 0 ? [] : [{ role: 'system', content: textOfBlocks(system) }]), ...messages],
      ...toolsOf(request.toolConfig),
      ...settingsOf(maxTokens, temperature, topP),
    },
    responseMapping: { ...responseMapping, ...(stop.length === 0 ? {} : { stop }) },
  };
}

function toolsOf(config: JsonObject | undefined): JsonObject {
  if (config === undefined) return {};
  const tools = listOf(config['tools']).map((tool) => {
    const { inputSchema, ...own } = objectOf(objectOf(tool)?.['toolSpec']) ?? {};
    return { type: 'function', function: { ...own, parameters: objectOf(inputSchema)?.['json'] } };
  });
  // The format cannot name a forced tool: it is sent as the only one in the list.
  return { tools, ...(config['toolChoice'] === undefined ? {} : { tool_choice: 'any' }) };
}

function assistantMessage(blocks: readonly JsonObject[]): JsonObject {
  const calls = blocks.map(({ toolUse }) => toolUse).filter(isObject);
  const content = textOfBlocks(blocks.filter(({ toolUse }) => toolUse === undefined));
  if (calls.length === 0) return { role: 'assistant', content };
  const tool_calls = calls.map(({ toolUseId, name, input }) => ({
    ...{ id: idOf(toolUseId), type: 'function' },
    function: { name, arguments: JSON.stringify(input) },
  }));
  return { role: 'assistant', content, tool_calls };
}

/** An answer must come between the results of tools and the user's next message. */
function userMessages(blocks: readonly JsonObject[]): JsonObject[] {
  const results = blocks.map(({ toolResult }) => toolResult).filter(isObject);
  const messages: JsonObject[] = results.map((result) => ({
    ...{ role: 'tool', tool_call_id: idOf(result['toolUseId']) },
    content: textOfResult(result),
  }));
  const said = blocks.filter(({ toolResult }) => toolResult === undefined);
  if (said.length === 0) return messages;
  if (messages.length > 0) messages.push({ role: 'assistant', content: 'I see.' });
  return [...messages, { role: 'user', content: contentOf(said) }];
}

function idOf(id: unknown): string {
  return legalCallId(textOf(id) ?? '', 'nine');
}

function contentOf(blocks: readonly JsonObject[]): unknown {
  if (blocks.every(({ image }) => image === undefined)) return textOfBlocks(blocks);
  return blocks.map((block) => {
    const { format, source } = objectOf(block['image']) ?? {};
    if (source === undefined) return { type: 'text', text: textOfBlocks([block]) };
    return { type: 'image_url', image_url: { url: `data:image/${format};base64,${objectOf(source)?.['bytes']}` } };
  });
}

/** Encodes a request for an upstream of this protocol. Pure. */
import { table } from '../../../../../core/contract/table.ts';
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext, EncodedRequest } from '../../../../common/canonical/codec.ts';
import type { OutputForm, Prompt } from '../../../../common/canonical/prompt.ts';
import { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { encodeModel } from '../relay.ts';
import { encodeConversation } from './contents.ts';
import { encodeSettings } from './settings.ts';
import { encodeTools, nameLimits } from './tools.ts';

/** Service tiers by canonical name; `auto` is the vendor's default. */
const tiers: Readonly<Record<string, string>> = table({
  default: 'standard',
  standard: 'standard',
  flex: 'flex',
  priority: 'priority',
  fast: 'priority',
});

export function encodeRequest(prompt: Prompt, context: EncodeContext): EncodedRequest {
  const namer = new ToolNamer(nameLimits);
  const answer = structuredBy(prompt, context);
  const requested = answer === 'tool' ? withAnswerTool(prompt) : prompt;
  const { tools, toolConfig, hasFunctions, makesImages } = encodeTools(requested, namer, context);
  const { contents, system } = encodeConversation(prompt.turns, namer, context);
  const systemTexts = answer === 'instruction' ? [...system, instruction(prompt.output!)] : system;
  const structured = answer === 'native';
  const { generationConfig, stop } = encodeSettings(prompt, context, { structured, makesImages });
  const body: Record<string, unknown> = {
    contents,
    ...(systemTexts.length === 0 ? {} : { systemInstruction: { parts: systemTexts.map((text) => ({ text })) } }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(toolConfig === undefined ? {} : { toolConfig }),
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
    ...serviceTier(prompt, context),
  };
  if (prompt.toolChoice?.mode === 'required' && !hasFunctions && tools.length > 0) context.dropped.drop('toolChoice');
  dropUntaken(body, context);
  return {
    path: pathOf(context),
    body,
    responseMapping: {
      names: namer.names,
      wrapped: namer.wrapped,
      ...(answer === 'tool' ? { answerTool: namer.nameFor(answerTool) } : {}),
      ...(stop.length === 0 ? {} : { stop }),
    },
  };
}

/** Removes members that the provider's config declares as not accepted and records them by the client's names. */
function dropUntaken(body: Record<string, unknown>, { target, dropped }: EncodeContext): void {
  for (const field of target.upstream.dropFields[target.protocol] ?? []) {
    if (body[field] === undefined) continue;
    delete body[field];
    if (field === 'serviceTier' || field === 'tools') dropped.drop(field);
    else dropped.dropField(field);
  }
}

function pathOf({ target, stream }: EncodeContext): string {
  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return `/models/${encodeModel(target.model)}:${method}`;
}

const answerTool = 'structured_answer';

/** The method for structured output; undefined: not requested. */
function structuredBy(
  { output, tools }: Prompt,
  { traits }: EncodeContext,
): 'native' | 'tool' | 'instruction' | undefined {
  if (output === undefined) return undefined;
  const hasFunctions = tools.some((tool) => tool.kind !== 'hosted');
  const { structured = 'native' } = traits;
  if (structured === 'tool') return output.form === 'schema' ? 'tool' : 'instruction';
  return structured === 'native' && (!hasFunctions || traits.structured_with_tools !== false)
    ? 'native'
    : 'instruction';
}

/** Every answer is then a call: of one of the client's tools, or of the tool that takes the structured output. */
function withAnswerTool(prompt: Prompt): Prompt {
  const { output, toolChoice } = prompt;
  const schema = output?.form === 'schema' ? output.schema : {};
  const description = 'Takes the final answer.';
  const names = toolChoice?.mode === 'none' ? [answerTool] : toolChoice?.names && [...toolChoice.names, answerTool];
  return {
    ...prompt,
    tools: [...prompt.tools, { kind: 'function', name: answerTool, description, schema }],
    toolChoice: { mode: 'required', ...(names === undefined ? {} : { names }) },
  };
}

function instruction(output: OutputForm): string {
  const only = 'Your final answer must be JSON alone, without any other text and without a code fence.';
  if (output.form === 'json') return only;
  const about = output.description === undefined ? '' : `\n${output.description}`;
  return `${only} It must follow this JSON Schema:${about}\n${JSON.stringify(output.schema)}`;
}

function serviceTier({ serviceTier: requested }: Prompt, { dropped }: EncodeContext): JsonObject {
  if (requested === undefined || requested === 'auto') return {};
  const tier = tiers[requested];
  if (tier === undefined) dropped.drop('serviceTier');
  return tier === undefined ? {} : { serviceTier: tier };
}

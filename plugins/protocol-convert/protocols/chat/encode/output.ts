/** Requests structured output from a chat upstream: with the native option, a forced tool, or an instruction. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { OutputForm, Prompt } from '../../../../common/canonical/prompt.ts';
import { forcedText } from '../../../../common/encoding/function-tools.ts';
import { rootObject } from '../../../../common/encoding/schema-repair.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { strictOutput } from '../../../encoding/schemas.ts';
import type { EncodedTools } from './tools.ts';

export interface EncodedOutput {
  readonly members: JsonObject;
  readonly instructions: readonly string[];
  /** Replaces the request's own tools. */
  readonly tools?: JsonObject;
  /** Name of the tool that takes the answer as its input. */
  readonly answerTool?: string;
}

const defaultName = 'response';
const jsonText = 'Answer with JSON and nothing else.';

export function encodeOutput(
  prompt: Prompt,
  context: EncodeContext,
  namer: ToolNamer,
  tools: EncodedTools,
): EncodedOutput {
  const { output } = prompt;
  if (output === undefined) return { members: {}, instructions: [] };
  if (output.form === 'json') return jsonObject(prompt, context);
  const hasTools = tools.members['tools'] !== undefined;
  const apart = hasTools && context.traits.structured_with_tools === false;
  const method = apart ? 'instruction' : (context.traits.structured ?? 'native');
  if (method === 'native') return { members: { response_format: schemaFormat(output, context) }, instructions: [] };
  if (method === 'tool') return byTool(output, context, namer, tools);
  const text = `${jsonText} It must follow this JSON schema:\n${JSON.stringify(output.schema)}`;
  return { members: apart ? {} : { response_format: { type: 'json_object' } }, instructions: [text] };
}

/** Servers refuse the option unless a message mentions JSON. */
function jsonObject({ turns }: Prompt, { traits }: EncodeContext): EncodedOutput {
  const isSaid = turns.some(({ parts }) => parts.some((part) => part.kind === 'text' && /json/i.test(part.text)));
  const isTaken = traits.structured !== 'tool';
  return {
    members: isTaken ? { response_format: { type: 'json_object' } } : {},
    instructions: isSaid && isTaken ? [] : [jsonText],
  };
}

type SchemaForm = OutputForm & { form: 'schema' };

function schemaFormat(output: SchemaForm, { dropped }: EncodeContext): JsonObject {
  const { name, description, schema } = output;
  return {
    type: 'json_schema',
    json_schema: {
      name: formatName(name),
      ...(description === undefined ? {} : { description }),
      schema,
      strict: strictOutput(output, dropped),
    },
  };
}

function formatName(name: string | undefined): string {
  return (name ?? '').replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || defaultName;
}

function byTool(
  output: SchemaForm,
  context: EncodeContext,
  namer: ToolNamer,
  { members }: EncodedTools,
): EncodedOutput {
  const { schema, description = 'Gives the final answer. Call it exactly once, when everything else is done.' } =
    output;
  const name = formatName(output.name);
  const parameters = rootObject(schema);
  // A separate namespace keeps it distinct from the client's tools.
  const answerTool = namer.declare({ kind: 'function', name, namespace: 'answer', schema: parameters });
  const own = (members['tools'] ?? []) as readonly JsonObject[];
  const isForced = context.traits.forced_tools !== false;
  const only = { type: 'function', function: { name: answerTool } };
  return {
    members: {},
    instructions: isForced && own.length === 0 ? [] : [`${forcedText([answerTool])} Its input is your answer.`],
    tools: {
      ...members,
      tools: [...own, { type: 'function', function: { name: answerTool, description, parameters } }],
      tool_choice: isForced ? (own.length === 0 ? only : 'required') : 'auto',
    },
    answerTool,
  };
}

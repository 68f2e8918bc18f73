/** Encodes the requested output form and its effect on tools and tool choice. Pure. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { OutputForm, Prompt } from '../../../../common/canonical/prompt.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { closedSchema, describedSchema, plainRoot } from '../../../encoding/schemas.ts';
import type { EncodedReasoning } from './reasoning.ts';
import type { EncodedChoice, EncodedTools } from './tools.ts';

export interface EncodedOutput extends EncodedTools {
  /** The format in `output_config`. */
  readonly format?: JsonObject;
  /** Texts for the end of the system prompt. */
  readonly instructions: readonly string[];
  /** The tool that takes the answer as its input. */
  readonly answerTool?: string;
}

type SchemaForm = Extract<OutputForm, { form: 'schema' }>;

const answerToolName = 'give_answer';

/** A model with reasoning, and some others, cannot be forced to call a tool: an instruction asks for the call. */
export function encodeOutput(
  prompt: Prompt,
  { tools, choice }: EncodedTools,
  reasoning: EncodedReasoning,
  namer: ToolNamer,
  { traits, dropped }: EncodeContext,
): EncodedOutput {
  const { output } = prompt;
  const mayForce = !reasoning.isOn && (traits.forced_tools ?? true);
  const eased = mayForce ? { choice, instructions: [] } : easedChoice(choice);
  if (eased.choice !== choice) dropped.drop('toolChoice');
  const plain = { tools, ...eased };
  if (output === undefined) return plain;
  if (output.form === 'json') return { ...plain, instructions: [...plain.instructions, jsonInstruction] };
  const goesWithTools = tools.length === 0 || (traits.structured_with_tools ?? true);
  const method = traits.structured ?? 'native';
  if (method === 'tool') return answerByTool(output, plain, mayForce, namer);
  if (method === 'native' && goesWithTools)
    return { ...plain, format: { type: 'json_schema', schema: closedSchema(describedSchema(output)) } };
  return { ...plain, instructions: [...plain.instructions, schemaInstruction(output)] };
}

interface EasedChoice {
  readonly choice: EncodedChoice | undefined;
  readonly instructions: readonly string[];
}

function easedChoice(choice: EncodedChoice | undefined): EasedChoice {
  if (choice?.type !== 'any' && choice?.type !== 'tool') return { choice, instructions: [] };
  const words = choice.type === 'tool' ? `the tool "${choice.name}"` : 'one of the tools';
  return { choice: { type: 'auto' }, instructions: [`Call ${words} now; do not answer in words alone.`] };
}

/** The answer is the input of a dedicated tool. If the client has tools too, the model may call one of them first. */
function answerByTool(
  output: SchemaForm,
  { tools, choice, instructions }: EncodedOutput,
  mayForce: boolean,
  namer: ToolNamer,
): EncodedOutput {
  const name = namer.nameFor(freeName(tools));
  const answer = {
    name,
    description: output.description ?? 'Gives the final answer in the form that is asked for.',
    input_schema: plainRoot(output.schema),
  };
  const forced: EncodedChoice = tools.length === 0 ? { type: 'tool', name } : { type: 'any' };
  const isOpen = choice === undefined || choice.type === 'auto' || choice.type === 'none';
  return {
    tools: choice?.type === 'none' ? [answer] : [...tools, answer],
    choice: isOpen ? (mayForce ? forced : { type: 'auto' }) : choice,
    instructions: mayForce ? instructions : [...instructions, `Give your final answer by calling the tool "${name}".`],
    answerTool: name,
  };
}

function freeName(tools: readonly JsonObject[]): string {
  let name = answerToolName;
  while (tools.some((tool) => tool['name'] === name)) name += '_';
  return name;
}

const jsonInstruction = 'Answer with one JSON object and nothing else: no words around it, no code fence.';

function schemaInstruction({ name, description, schema }: SchemaForm): string {
  const about = [name, description].filter((text) => text !== undefined).join(': ');
  const intro = 'Answer with JSON and nothing else: no words around it, no code fence. It must follow this JSON Schema';
  return `${intro}${about === '' ? '' : ` (${about})`}:\n${JSON.stringify(schema)}`;
}

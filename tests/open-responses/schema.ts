/** The members that the Open Responses specification of 2026-04-24 requires, as schemas to hold answers and events against. */
import { z } from 'zod';

const count = z.number().int().min(0);
const text = z.string();
const nullableText = text.nullable();

const logprob = z.looseObject({
  token: text,
  logprob: z.number(),
  bytes: z.array(z.number()),
  top_logprobs: z.array(z.looseObject({ token: text, logprob: z.number(), bytes: z.array(z.number()) })),
});
const annotation = z.looseObject({
  type: z.literal('url_citation'),
  url: text,
  start_index: count,
  end_index: count,
  title: text,
});
const parts = [
  z.looseObject({ type: z.literal('input_text'), text }),
  z.looseObject({
    type: z.literal('output_text'),
    text,
    annotations: z.array(annotation),
    logprobs: z.array(logprob).optional(),
  }),
  z.looseObject({ type: z.literal('summary_text'), text }),
  z.looseObject({ type: z.literal('reasoning_text'), text }),
  z.looseObject({ type: z.literal('refusal'), refusal: text }),
  z.looseObject({ type: z.literal('input_image'), image_url: nullableText, detail: z.enum(['low', 'high', 'auto']) }),
  z.looseObject({ type: z.literal('input_file') }),
] as const;
const part = z.discriminatedUnion('type', parts);

const status = z.enum(['in_progress', 'completed', 'incomplete']);
const id = text.min(1);
const item = z.discriminatedUnion('type', [
  z.looseObject({
    type: z.literal('message'),
    id,
    status,
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.array(part),
    phase: z.enum(['commentary', 'final_answer']).optional(),
  }),
  z.looseObject({ type: z.literal('function_call'), id, call_id: id, name: id, arguments: text, status }),
  z.looseObject({
    type: z.literal('function_call_output'),
    id,
    call_id: id,
    output: z.union([text, z.array(part)]),
    status,
  }),
  z.looseObject({
    type: z.literal('reasoning'),
    id,
    summary: z.array(part),
    content: z.array(part).optional(),
    encrypted_content: text.optional(),
  }),
  z.looseObject({ type: z.literal('compaction'), id, encrypted_content: text }),
]);

const functionTool = z.looseObject({
  type: z.literal('function'),
  name: id,
  description: nullableText,
  parameters: z.record(text, z.unknown()).nullable(),
  strict: z.boolean().nullable(),
});
const functionChoice = z.looseObject({ type: z.literal('function'), name: text.optional() });
const mode = z.enum(['none', 'auto', 'required']);
const format = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    name: text,
    description: nullableText,
    schema: z.record(text, z.unknown()).nullable(),
    strict: z.boolean(),
  }),
]);
const usage = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  input_tokens_details: z.looseObject({ cached_tokens: count }),
  output_tokens_details: z.looseObject({ reasoning_tokens: count }),
});
const effort = z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']);

export const responseResource = z.looseObject({
  id,
  object: z.literal('response'),
  created_at: count,
  completed_at: count.nullable(),
  status: text,
  incomplete_details: z.looseObject({ reason: text }).nullable(),
  model: text,
  previous_response_id: nullableText,
  instructions: nullableText,
  output: z.array(item),
  error: z.looseObject({ code: text, message: text }).nullable(),
  tools: z.array(functionTool),
  tool_choice: z.union([
    functionChoice,
    mode,
    z.looseObject({ type: z.literal('allowed_tools'), tools: z.array(functionChoice), mode }),
  ]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.looseObject({ format, verbosity: z.enum(['low', 'medium', 'high']).optional() }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: count,
  temperature: z.number(),
  reasoning: z
    .looseObject({ effort: effort.nullable(), summary: z.enum(['concise', 'detailed', 'auto']).nullable() })
    .nullable(),
  usage: usage.nullable(),
  max_output_tokens: count.nullable(),
  max_tool_calls: count.nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: text,
  metadata: z.record(text, z.unknown()),
  safety_identifier: nullableText,
  prompt_cache_key: nullableText,
});

export const compactResource = z.looseObject({
  id,
  object: z.literal('response.compaction'),
  output: z.array(item),
  created_at: count,
  usage,
});

/** Items of a conversation, as `input_items` lists them. */
export const listedItems = z.looseObject({ data: z.array(item) });

const ofItem = { output_index: count, item };
const inItem = { item_id: id, output_index: count };
const inContent = { ...inItem, content_index: count };
const inSummary = { ...inItem, summary_index: count };
const lifecycle = { response: responseResource };

const members: Readonly<Record<string, z.ZodRawShape>> = {
  'response.created': lifecycle,
  'response.queued': lifecycle,
  'response.in_progress': lifecycle,
  'response.completed': lifecycle,
  'response.failed': lifecycle,
  'response.incomplete': lifecycle,
  'response.output_item.added': ofItem,
  'response.output_item.done': ofItem,
  'response.reasoning_summary_part.added': { ...inSummary, part },
  'response.reasoning_summary_part.done': { ...inSummary, part },
  'response.reasoning_summary_text.delta': { ...inSummary, delta: text },
  'response.reasoning_summary_text.done': { ...inSummary, text },
  'response.content_part.added': { ...inContent, part },
  'response.content_part.done': { ...inContent, part },
  'response.output_text.delta': { ...inContent, delta: text, logprobs: z.array(logprob).optional() },
  'response.output_text.done': { ...inContent, text, logprobs: z.array(logprob).optional() },
  'response.output_text.annotation.added': { ...inContent, annotation_index: count, annotation },
  'response.refusal.delta': { ...inContent, delta: text },
  'response.refusal.done': { ...inContent, refusal: text },
  'response.function_call_arguments.delta': { ...inItem, delta: text },
  'response.function_call_arguments.done': { ...inItem, arguments: text },
  error: { error: z.looseObject({ type: text, code: nullableText, message: text, param: nullableText }) },
};

/** The schema of an event by its type; undefined: the specification has no such event. */
export const eventSchemas: ReadonlyMap<string, z.ZodType> = new Map(
  Object.entries(members).map(([type, shape]) => [
    type,
    z.looseObject({ type: z.literal(type), sequence_number: count, ...shape }),
  ]),
);

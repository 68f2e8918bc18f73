/**
 * Traits: which parameters a model at an upstream accepts, and in which form; used to encode translated requests. Limits: what
 * its vendor documents beside them.
 */
import { z } from '../../../core/contract/schema.ts';

/** Ways in which protocols ask for reasoning. `none`: the model does not reason, or its effort cannot be set. */
const reasoningForms = ['none', 'effort', 'adaptive', 'budget', 'level'] as const;
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
/** How much a model is to reason, from nothing to all it can. */
export type Effort = (typeof efforts)[number];
const inputKinds = ['image', 'document', 'audio', 'video'] as const;

/**
 * Absent members have the default of the upstream's protocol. A provider sets them per protocol (`dialect`), a model for
 * itself (`traits`); the model's take precedence.
 */
export const traitsSchema = z.strictObject({
  max_tokens_field: z
    .enum(['max_tokens', 'max_completion_tokens'])
    .optional()
    .describe(
      'chat: the member that bounds the answer. Set it to max_completion_tokens for models that refuse the older name. Default: max_tokens.',
    ),
  sampling: z
    .boolean()
    .optional()
    .describe('Takes temperature, top_p and their like. Turn it off for models that refuse them. Default: true.'),
  max_temperature: z
    .number()
    .optional()
    .describe(
      'Highest temperature; higher ones are lowered. Set it to what the vendor documents. Default: 2; messages: 1.',
    ),
  reasoning: z
    .enum(reasoningForms)
    .optional()
    .describe(
      'How reasoning is asked for. Set it to the form that the model takes. Default: effort; messages: adaptive; gemini: level.',
    ),
  efforts: z
    .array(z.enum(efforts))
    .optional()
    .describe(
      "Efforts (or levels) that it knows; others become the nearest. Set it to the vendor's list. Default: low, medium, high.",
    ),
  reasoning_off: z
    .boolean()
    .optional()
    .describe('Reasoning can be switched off. Turn it off for models that always reason. Default: true.'),
  reasoning_with_tools: z
    .boolean()
    .optional()
    .describe(
      'chat: reasons in requests with function tools; else they ask for effort none. Turn it off for models that refuse both together. Default: true.',
    ),
  max_budget: z
    .int()
    .optional()
    .describe('Largest reasoning budget, in tokens. Set it to what the vendor documents. Default: no bound.'),
  reasoning_replay: z
    .boolean()
    .optional()
    .describe(
      'chat: wants its reasoning_content back in turns that call tools. Turn it on for models that refuse turns without it. Default: false.',
    ),
  structured: z
    .enum(['native', 'tool', 'instruction'])
    .optional()
    .describe(
      'How an answer that follows a JSON schema is had: by its own option, a forced tool, or asking for it. Change it for models without that option. Default: native.',
    ),
  structured_with_tools: z
    .boolean()
    .optional()
    .describe(
      'A schema and tools go together in one request. Turn it off for models that refuse both together. Default: true.',
    ),
  forced_tools: z
    .boolean()
    .optional()
    .describe('Takes a choice that forces a tool. Turn it off for models that refuse it. Default: true.'),
  allowed_tools: z
    .boolean()
    .optional()
    .describe(
      'chat: takes a choice of some of the tools; else only these are sent. Turn it on for models that document it. Default: false.',
    ),
  file_stores: z
    .array(z.string())
    .optional()
    .describe(
      'chat: schemes of addresses that it reads itself, such as gs. Set it for vendors that fetch from their own store. Default: none; gemini: all.',
    ),
  strict_tools: z
    .boolean()
    .optional()
    .describe(
      'Takes the strict mark of tools. Turn it off for models that refuse it. Default: true where the protocol has one.',
    ),
  system_anywhere: z
    .boolean()
    .optional()
    .describe(
      'Takes system messages between other messages; else they become marked user text. Turn it off for models that refuse them. Default: true; gemini: false.',
    ),
  prefill: z
    .boolean()
    .optional()
    .describe(
      'messages: may be given the beginning of its answer. Turn it on for models that document it. Default: false.',
    ),
  cache_marks: z
    .boolean()
    .optional()
    .describe(
      'Takes marks that say what to cache. Turn it on for vendors that document them. Default: messages: true, others: false.',
    ),
  cache_mark_field: z
    .enum(['prompt_cache_breakpoint', 'cache_control'])
    .optional()
    .describe(
      "chat: the member that marks what to cache. Set it to the vendor's name of it. Default: prompt_cache_breakpoint.",
    ),
  betas: z
    .array(z.string())
    .optional()
    .describe(
      "Beta features that it takes, where unknown ones are refused; others are left out and reported. Set it to what the vendor's cloud documents. Default: those that its plugin lists.",
    ),
  inputs: z
    .array(z.enum(inputKinds))
    .optional()
    .describe(
      'What it can see and hear beside text. Set it so that calls with other media are refused before they cost. Default: whatever the protocol can carry.',
    ),
  text_only: z
    .boolean()
    .optional()
    .describe(
      "Answers with text alone, so that no more than its price is set aside for an answer, whatever pictures of the vendor's own tool cost. Turn it on for models that paint nothing. Default: false.",
    ),
  tool_ids: z
    .enum(['any', 'none', 'nine'])
    .optional()
    .describe(
      "Ids of tool calls: any, none (they are not sent), nine letters and digits. Change it for vendors that refuse others. Default: any; gemini: 'any'.",
    ),
  tool_result_media: z
    .boolean()
    .optional()
    .describe(
      'Takes images inside tool results; else they follow as user content. Change it to what the vendor documents. Default: true; chat: false.',
    ),
  signatures: z
    .boolean()
    .optional()
    .describe(
      'gemini: refuses function calls of earlier turns without a thought signature. Turn it off for models that know none. Default: true.',
    ),
  json_schema_tools: z
    .boolean()
    .optional()
    .describe(
      'gemini: takes parametersJsonSchema; else the OpenAPI subset is sent. Turn it off for models that refuse it. Default: true.',
    ),
  hosted_tools: z
    .array(z.enum(['web_search', 'web_fetch', 'code_execution']))
    .optional()
    .describe(
      "Vendor's own tools that may be asked for. Set it to those that you have priced. Default: none for chat; all that the protocol has for others.",
    ),
  hosted_with_functions: z
    .boolean()
    .optional()
    .describe(
      "Vendor's own tools and functions go together in one request; else functions alone. Turn it off for models that refuse both together. Default: true.",
    ),
  compaction: z
    .boolean()
    .optional()
    .describe(
      'Compacts conversations itself. responses: else the gateway has the model summarise them; messages: else requests with "compaction" are refused. Turn it off for vendors without that address. Default: responses: true; messages: false.',
    ),
  threads: z
    .boolean()
    .optional()
    .describe(
      'messages: stores conversations that requests continue by "thread"; else such requests are refused, and official clients send the whole conversation. Turn it on for the vendor that has them. Default: false.',
    ),
  token_counting: z
    .boolean()
    .optional()
    .describe(
      'Has an address that counts tokens; else the gateway estimates them. Turn it off for vendors without it. Default: true, but false for chat.',
    ),
  resolutions: z
    .array(z.enum(['1k', '2k', '4k', '480p', '720p', '1080p']))
    .min(1)
    .optional()
    .describe(
      'Images and videos: what it makes, smallest first; a smaller wish gets the smallest. Set it to what the vendor documents. Default: what the protocol has.',
    ),
  needs_image: z
    .boolean()
    .optional()
    .describe(
      'Videos: is shown exactly one image with a text, and nothing else. Turn it on for models that animate a picture. Default: false.',
    ),
  websocket: z
    .boolean()
    .optional()
    .describe(
      'responses: takes turns over WebSocket at the same address, for clients that use one; else over HTTP. Turn it on for vendors that document it. Default: false.',
    ),
  batches: z
    .enum(['calls', 'native'])
    .optional()
    .describe(
      "How batches are made whose lines all go to one model: each line is a call, or native: they are handed to the vendor's own batch API. Use native for the vendor's lower price. Default: calls.",
    ),
  streams: z
    .enum(['both', 'only', 'never'])
    .optional()
    .describe(
      'Whether it streams: both ways, only streams, or never; the client gets what it asked for. Change it for models that do only one. Default: both.',
    ),
});

export type Traits = z.output<typeof traitsSchema>;

/** The traits of one target: the model's over the provider's. Absent members are the protocol's default. */
export function mergeTraits(provider: Traits | undefined, model: Traits | undefined): Traits {
  if (model === undefined) return provider ?? {};
  return provider === undefined ? model : { ...provider, ...model };
}

const most = () => z.int().min(1).max(1_000_000).optional();

const words = () => z.array(z.string().min(1).max(40)).min(1).max(100).optional();

/** What a vendor documents of a model beside its tokens; shown to people, and the bounds of the console's playground. */
export const limitsSchema = z.strictObject({
  prompt: most().describe('Longest prompt or spoken text, in characters. Write what the vendor documents.'),
  images: most().describe('Most images of one request. Write what the vendor documents.'),
  references: most().describe('Most images that are given to the model. Write what the vendor documents.'),
  seconds: most().describe('Longest video, in seconds. Write what the vendor documents.'),
  size: z
    .string()
    .regex(/^\d{1,5}x\d{1,5}$/, 'must be a size such as 3840x2160')
    .optional()
    .describe('Largest size, as width x height. Write what the vendor documents.'),
  resolutions: z
    .array(z.string().min(1).max(20))
    .min(1)
    .max(20)
    .optional()
    .describe(
      'Resolutions that people can choose. Set it where the model makes fewer than `traits` says. Default: those of `traits`.',
    ),
  qualities: words().describe('Qualities of images. Write what the vendor documents.'),
  voices: words().describe('Voices of a model that speaks. Write what the vendor documents.'),
  formats: words().describe('Formats of its answers: of sound, or of transcriptions. Write what the vendor documents.'),
});
export type ModelLimits = z.output<typeof limitsSchema> & {
  /** Whether it makes nothing without an image; by its traits. */
  readonly needsImage?: boolean;
};

/** Why a vendor refuses a request: a prompt that is too long, or content rules. By its codes, else by how it says so. Pure. */

import { isObject, type JsonObject, listOf, objectOf } from '../../../core/json/json.ts';
import { errorIn } from '../kit/error-body.ts';

export type RefusalClass = 'context_length' | 'content_filter';

const contextCodes = new Set<unknown>([
  'context_length_exceeded',
  'context_window_exceeded',
  'model_context_window_exceeded',
  'exceed_context_size_error',
  'string_above_max_length',
  'tokens_limit_reached',
  'prompt_too_long',
  'input_too_long',
]);

/** Vendors' messages for a prompt that is too long for the model. */
const overflowMessage = new RegExp(
  [
    'prompt is too long|input is too long|prompt exceeds max(?:imum)? length|maximum prompt length',
    'context (?:window|length|limit|size)',
    'token count.{0,60}(?:exceeds|only supports)|token limit|input (?:length|tokens?) exceed',
    'too many (?:input )?tokens|too large for model with|range of input length should be',
    'tokens per minute.{0,80}reduce your message size|max_new_tokens`? must be <=',
  ].join('|'),
  'i',
);

const contentCodes = new Set<unknown>([
  'content_filter',
  'content_policy_violation',
  'ResponsibleAIPolicyViolation',
  'moderation_blocked',
  'data_inspection_failed',
  'DataInspectionFailed',
  'sensitive_words_detected',
  'invalid_prompt',
]);

const contentMessage = new RegExp(
  [
    'content (?:filter|management policy|policy|exists risk|violates usage guidelines)',
    'usage polic(?:y|ies)|inappropriate content|blocked by content filtering|safety system',
    'input was flagged|guardrail|responsible ai',
  ].join('|'),
  'i',
);

/** How answers end that content rules have kept back; vendors' spellings without case. */
const contentFinishes =
  /^(?:content_filter(?:ed)?|refusal|sensitive|guardrail_intervened|error_toxic|safety|image_safety|prohibited_content|image_prohibited_content|blocklist|spii|moderation)$/i;

/** Statuses about the request itself. */
const classed = new Set([400, 413, 422]);

/** undefined: for another reason, or for one that it does not say. */
export function refusalClass(status: number, json: JsonObject | undefined, message = ''): RefusalClass | undefined {
  if (!classed.has(status)) return undefined;
  const codes = codesIn(json);
  if (codes.some((code) => contextCodes.has(code))) return 'context_length';
  if (codes.some((code) => contentCodes.has(code))) return 'content_filter';
  if (isOverflow(message)) return 'context_length';
  if (contentMessage.test(message)) return 'content_filter';
  // A request of too many bytes here may be none elsewhere.
  return status === 413 ? 'context_length' : undefined;
}

export function isOverflow(message: string): boolean {
  return overflowMessage.test(message);
}

/** Whether an answer ended because content rules kept it back. */
export function isContentFinish(finish: string | undefined): boolean {
  return finish !== undefined && contentFinishes.test(finish);
}

/** The greatest number of the message, which at least is too many tokens; undefined: it names none. */
export function reportedTokens(message: string): number | undefined {
  const counts = [...message.matchAll(/(?<![\w-])\d[\d,]{2,10}(?![\w-])/g)].map(([digits]) =>
    Number(digits.replaceAll(',', '')),
  );
  const greatest = Math.max(0, ...counts.filter((count) => count <= mostTokens));
  return greatest === 0 ? undefined : greatest;
}

/** Greater numbers are times or ids. */
const mostTokens = 20_000_000;

function codesIn(json: JsonObject | undefined): unknown[] {
  if (json === undefined) return [];
  const inner = errorIn(json);
  const deeper = objectOf(inner['innererror']) ?? objectOf(inner['inner_error']);
  const nested = listOf(inner['details']).filter(isObject);
  return [inner, ...(deeper === undefined ? [] : [deeper]), ...nested].flatMap(({ code, type, reason }) => [
    code,
    type,
    reason,
  ]);
}

/** How vendors' refusals of a thing end a task, and how their errors are sorted. Pure. */
import { type JsonObject, objectOf, textOf } from '../../../core/json.ts';
import { classify, errorIn, notAnAnswer } from '../../../core/refusals.ts';
import { scrubText } from '../../../core/scrub.ts';
import type { Step, VendorAnswer } from '../contract.ts';

type Failed = Extract<Step, { state: 'failed' }>;

const maxMessageLength = 500;

/** What clients are told of the ends that need no vendor's words. */
const sentences = {
  content_policy: 'The prompt, a reference or the result is not allowed by the content rules of the model.',
  no_image: 'The model made no image of this prompt.',
  generation_failed: 'The model could not make this.',
  expired: 'The model did not make this in time.',
  cancelled: 'The task was cancelled before it began.',
} as const;

export function failed(code: keyof typeof sentences): Failed {
  return { state: 'failed', code, message: sentences[code] };
}

/** Codes, types and beginnings of messages by which vendors say that their rules forbid it. */
const moderationCode = /moderation|content_policy|SensitiveContent|safety|PROHIBITED_CONTENT/i;
const moderationMessage =
  /^(?:your request was rejected|(?:the )?(?:generated|prompt|input|output|request|content|image|video)\b.{0,80}\b(?:moderation|safety|sensitive|usage guidelines|content policy)|content violates|usage guidelines)/i;

/** Whether an error's own words say that a rule forbids the prompt, a reference or the result. */
export function isModeration(error: JsonObject): boolean {
  const words = [error['code'], error['type'], error['status']];
  if (words.some((word) => typeof word === 'string' && moderationCode.test(word))) return true;
  return moderationMessage.test(textOf(error['message']) ?? textOf(error['error']) ?? '');
}

/** A task of the vendor's own that came to a bad end, by its error object. */
export function failedTask(error: JsonObject | undefined): Failed {
  if (error === undefined) return failed('generation_failed');
  if (isModeration(error)) return failed('content_policy');
  const message = textOf(error['message']);
  if (message === undefined || !isClients(error)) return failed('generation_failed');
  return { state: 'failed', code: 'invalid_input', message: scrubText(message.slice(0, maxMessageLength)) };
}

/** Words about what the client sent are for the client; others may tell of the vendor's inside. */
function isClients(error: JsonObject): boolean {
  const code = textOf(error['code']) ?? textOf(error['type']) ?? '';
  return /^(?:invalid|missing|unsupported|bad_request)/i.test(code);
}

/**
 * The answer's object. An error status that is about content ends the task as failed; every other one is thrown, and so is
 * what is no JSON object: by it the vendor may have begun.
 */
export function readObject(answer: VendorAnswer): { readonly json: JsonObject } | { readonly failed: Failed } {
  const json = objectOf(answer.json);
  if (answer.status < 300) {
    if (json === undefined) throw notAnAnswer('the body is no JSON object', true);
    return { json };
  }
  if (answer.status < 500 && json !== undefined && isModeration(errorIn(json)))
    return { failed: failed('content_policy') };
  const body = json === undefined ? '' : JSON.stringify(json);
  throw classify(answer.status, { ...answer.headers }, Buffer.from(body), answer.atMs ?? 0);
}

/** A 2xx that is none of the protocol's answers: the vendor may have begun, and may charge. */
export function unreadable(what: string): Error {
  return notAnAnswer(what, true);
}

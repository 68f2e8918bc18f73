/** How vendors' refusals end a task, and how their errors are classified. Pure. */

import { type JsonObject, objectOf, textOf } from '../../../core/json/json.ts';
import { errorIn } from '../kit/error-body.ts';
import { scrubText } from '../kit/scrub.ts';
import { classify, notAnAnswer } from '../kit/upstream-errors.ts';
import type { Step, VendorAnswer } from './adapters.ts';

type Failed = Extract<Step, { state: 'failed' }>;

const maxMessageLength = 500;

/** Messages to clients for ends that do not quote the vendor. */
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

/** Codes, types and message prefixes by which vendors report a content rule. */
const moderationCode = /moderation|content_policy|SensitiveContent|safety|PROHIBITED_CONTENT/i;
const moderationMessage =
  /^(?:your request was rejected|(?:the )?(?:generated|prompt|input|output|request|content|image|video)\b.{0,80}\b(?:moderation|safety|sensitive|usage guidelines|content policy)|content violates|usage guidelines)/i;

/** Whether an error says that a content rule forbids the prompt, a reference or the result. */
export function isModeration(error: JsonObject): boolean {
  const words = [error['code'], error['type'], error['status']];
  if (words.some((word) => typeof word === 'string' && moderationCode.test(word))) return true;
  return moderationMessage.test(textOf(error['message']) ?? textOf(error['error']) ?? '');
}

/** A content rule, by the code that clients of the official images API know where the vendor says it. */
export function moderated({ code }: JsonObject): Failed {
  return code === moderationBlocked ? { ...failed('content_policy'), code } : failed('content_policy');
}

const moderationBlocked = 'moderation_blocked';

/** A failed task of the vendor, by its error object. */
export function failedTask(error: JsonObject | undefined): Failed {
  if (error === undefined) return failed('generation_failed');
  if (isModeration(error)) return moderated(error);
  const message = textOf(error['message']);
  if (message === undefined || !isClients(error)) return failed('generation_failed');
  return { state: 'failed', code: 'invalid_input', message: scrubText(message.slice(0, maxMessageLength)) };
}

/** Messages about the client's input may be shown to the client; others may reveal the vendor's internals. */
function isClients(error: JsonObject): boolean {
  const code = textOf(error['code']) ?? textOf(error['type']) ?? '';
  return /^(?:invalid|missing|unsupported|bad_request)/i.test(code);
}

/**
 * The answer's object. An error status about content ends the task as failed; any other error status is thrown, and so
 * is a body that is no JSON object: the vendor may have started the work.
 */
export function readObject(answer: VendorAnswer): { readonly json: JsonObject } | { readonly failed: Failed } {
  const json = objectOf(answer.json);
  if (answer.status < 300) {
    if (json === undefined) throw notAnAnswer('the body is no JSON object', true);
    return { json };
  }
  const body = answer.bytes ?? Buffer.from(answer.json === undefined ? '' : JSON.stringify(answer.json));
  const refusal = classify(answer.status, { ...answer.headers }, body, answer.atMs ?? 0);
  const { message, code } = refusal.error;
  const error = json === undefined ? { message, code } : errorIn(json);
  if (answer.status < 500 && isModeration(error)) return { failed: moderated(error) };
  throw refusal;
}

/** A 2xx that does not match the protocol: the vendor may have started the work and may charge for it. */
export function unreadable(what: string): Error {
  return notAnAnswer(what, true);
}

/** Why an answer ended, between finish reasons and the common tongue. Pure. */
import type { StopReason } from '../../reply.ts';

/** The model wrote a call that nobody can carry out: without other content there is no answer. */
const malformed = new Set([
  'MALFORMED_FUNCTION_CALL',
  'MALFORMED_RESPONSE',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MISSING_THOUGHT_SIGNATURE',
]);

const refused = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'MODEL_ARMOR',
  'JAILBREAK',
  'NO_IMAGE',
]);

export function isMalformed(reason: string | undefined): boolean {
  return reason !== undefined && malformed.has(reason);
}

/** Where nothing else was answered, this reason is no answer: the vendor broke it off. `OTHER` is told of internal errors. */
export function isFailure(reason: string): boolean {
  return reason === 'OTHER' || malformed.has(reason);
}

/** Reasons that came after this was written count as a plain stop. */
export function stopOf(reason: string): StopReason {
  if (reason === 'MAX_TOKENS' || reason === 'CONTINUATION') return 'length';
  return refused.has(reason) || reason.startsWith('IMAGE_') ? 'refusal' : 'stop';
}

/** Calls end an answer with STOP: the protocol has no reason of its own for them. */
export function finishOf(stop: StopReason): string {
  if (stop === 'length') return 'MAX_TOKENS';
  return stop === 'refusal' ? 'SAFETY' : 'STOP';
}

/** Converts between finish reasons and the canonical format. Pure. */
import type { StopReason } from '../../../common/canonical/reply.ts';

/** The model wrote a malformed call: without other content there is no answer. */
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

/**
 * Without other content, an answer with this reason is a failure: the vendor aborted it. `OTHER` stands for internal errors.
 */
export function isFailure(reason: string): boolean {
  return reason === 'OTHER' || malformed.has(reason);
}

/** Unknown reasons count as a plain stop. */
export function stopOf(reason: string): StopReason {
  if (reason === 'MAX_TOKENS' || reason === 'CONTINUATION') return 'length';
  return refused.has(reason) || reason.startsWith('IMAGE_') ? 'refusal' : 'stop';
}

/** An answer that ends with calls has the reason STOP: the protocol has no separate one. */
export function finishOf(stop: StopReason): string {
  if (stop === 'length') return 'MAX_TOKENS';
  return stop === 'refusal' ? 'SAFETY' : 'STOP';
}

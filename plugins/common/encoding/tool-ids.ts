/** Legal ids of tool calls for each protocol. Pure. */
import { shortHash } from './hash.ts';

/**
 * The rules for an id. `any`: at most 64 visible characters (chat, responses, gemini). `nine`: exactly nine letters
 * and digits.
 */
export type CallIdForm = 'messages' | 'any' | 'nine';

const forms: Record<CallIdForm, { legal: RegExp; prefix: string; hashLength: number }> = {
  messages: { legal: /^[a-zA-Z0-9_-]{1,64}$/, prefix: 'toolu_', hashLength: 24 },
  // Some models number their calls `functions.read:0` and expect that back, so every visible character may stay.
  any: { legal: /^[\x21-\x7e]{1,64}$/, prefix: 'call_', hashLength: 24 },
  nine: { legal: /^[a-zA-Z0-9]{9}$/, prefix: '', hashLength: 9 },
};

/**
 * A legal id stays, and so does one of `own`, which the vendor itself gave; any other becomes one that is derived from it
 * alone: calls and results with the same id keep the same id in every request. Empty ids must have been replaced before
 * (`madeCallId`).
 */
export function legalCallId(id: string, form: CallIdForm, own?: ReadonlySet<string>): string {
  const { legal, prefix, hashLength } = forms[form];
  return legal.test(id) || own?.has(id) === true ? id : prefix + shortHash(id, hashLength);
}

/** An id for a call without one: the same whenever the same history is sent. `turn`, `ordinal`: its position. */
export function madeCallId(turn: number, ordinal: number, name: string): string {
  return `call_${shortHash(`${turn}\0${ordinal}\0${name}`, 24)}`;
}

/**
 * Opaque state without a member of its own in this protocol (of texts, calls and redacted reasoning), carried by marked
 * reasoning items. Pure.
 */

/** No vendor's own text starts with it: those are base64 or JSON. */
const mark = '#of ';

/** What the opaque state in a reasoning item belongs to. */
export type Owner =
  | { readonly of: 'reasoning'; readonly value: string; readonly redacted?: true }
  | { readonly of: 'text'; readonly value: string }
  | { readonly of: 'call'; readonly callId: string; readonly value: string };

/** Redacted reasoning, marked: it is returned as such, not as reasoning with a signature. */
export function opaqueStateOfRedacted(value: string): string {
  return `${mark}redacted\n${value}`;
}

export function opaqueStateOfText(value: string): string {
  return `${mark}text\n${value}`;
}

export function opaqueStateOfCall(callId: string, value: string): string {
  return `${mark}call ${callId}\n${value}`;
}

/** The reverse of the three functions above; any other text is the reasoning's own. */
export function ownerOf(value: string): Owner {
  if (!value.startsWith(mark)) return { of: 'reasoning', value };
  const lineEnd = value.indexOf('\n');
  const head = value.slice(mark.length, lineEnd);
  const rest = value.slice(lineEnd + 1);
  if (head === 'redacted') return { of: 'reasoning', value: rest, redacted: true };
  return head.startsWith('call ')
    ? { of: 'call', callId: head.slice('call '.length), value: rest }
    : { of: 'text', value: rest };
}

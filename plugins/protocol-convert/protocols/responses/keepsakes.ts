/** Keepsakes of texts and calls: they have no slot of their own here, so they travel in reasoning items and say whose they are. Pure. */

/** Cannot begin a vendor's own words: those are base64 or JSON. */
const mark = '#of ';

/** What a reasoning item's opened keepsake belongs to. */
export type Owner =
  | { readonly of: 'reasoning'; readonly value: string }
  | { readonly of: 'text'; readonly value: string }
  | { readonly of: 'call'; readonly callId: string; readonly value: string };

export function keepsakeOfText(value: string): string {
  return `${mark}text\n${value}`;
}

export function keepsakeOfCall(callId: string, value: string): string {
  return `${mark}call ${callId}\n${value}`;
}

/** The reverse of the two above; any other text is the reasoning's own. */
export function ownerOf(value: string): Owner {
  if (!value.startsWith(mark)) return { of: 'reasoning', value };
  const lineEnd = value.indexOf('\n');
  const head = value.slice(mark.length, lineEnd);
  const rest = value.slice(lineEnd + 1);
  return head.startsWith('call ')
    ? { of: 'call', callId: head.slice('call '.length), value: rest }
    : { of: 'text', value: rest };
}

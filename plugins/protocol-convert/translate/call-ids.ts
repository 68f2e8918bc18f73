/**
 * A vendor's ids of calls for clients: an id that the client's protocol could not carry is packed into one that it can, and
 * unpacked in the next request. Pure.
 */
import type { Part, Turn } from '../../common/canonical/prompt.ts';

const anyLegal = /^[\x21-\x7e]{1,64}$/;
const plainLegal = /^[a-zA-Z0-9_-]{1,64}$/;
/** Longer ids stay as they are, or become a digest. */
const longestPacked = 4_096;
const packed = /^(?:call|toolu)_gw1([0-9A-Za-z]{8})_([A-Za-z0-9_-]{1,20000})$/;

/**
 * `isPlain`: the client's or the vendor's protocol has ids of letters, digits, `-` and `_` alone, so that others must be known
 * again. `mark`: of the vendor, 8 letters and digits; called only for an id that has to be packed.
 */
export function clientCallId(id: string, isPlain: boolean, mark: () => string): string {
  if ((isPlain ? plainLegal : anyLegal).test(id) || id.length > longestPacked) return id;
  const bytes = Buffer.from(id, 'utf8');
  // Lone surrogates have no bytes.
  return bytes.toString('utf8') === id
    ? `${isPlain ? 'toolu' : 'call'}_gw1${mark()}_${bytes.toString('base64url')}`
    : id;
}

export function isPacked(id: string): boolean {
  return packed.test(id);
}

interface Unpacked {
  readonly id: string;
  readonly mark: string;
}

function unpacked(id: string): Unpacked | undefined {
  const [, mark, encoded] = packed.exec(id) ?? [];
  if (mark === undefined || encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64url');
  const text = bytes.toString('utf8');
  const isOurs = text !== '' && Buffer.from(text, 'utf8').toString('base64url') === encoded;
  return isOurs ? { id: text, mark } : undefined;
}

/** The turns with the vendors' ids; `own`: those that the vendor with one of these marks gave. */
export function withVendorIds(
  turns: readonly Turn[],
  marks: () => readonly string[],
): { readonly turns: readonly Turn[]; readonly own: ReadonlySet<string> | undefined } {
  if (!turns.some(({ parts }) => parts.some((part) => isPacked(idOf(part))))) return { turns, own: undefined };
  const own = new Set<string>();
  const ownMarks = marks();
  const part = (one: Part): Part => {
    const found = unpacked(idOf(one));
    if (found === undefined) return one;
    if (ownMarks.includes(found.mark)) own.add(found.id);
    if (one.kind === 'tool-call') return { ...one, id: found.id };
    return one.kind === 'tool-result' ? { ...one, callId: found.id } : one;
  };
  return { turns: turns.map((turn) => ({ ...turn, parts: turn.parts.map(part) })), own };
}

function idOf(part: Part): string {
  if (part.kind === 'tool-call') return part.id;
  return part.kind === 'tool-result' ? part.callId : '';
}

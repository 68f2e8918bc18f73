/** Opaque state that clients return with thoughts in the next turn: signatures and sealed texts. Deterministic. Pure. */
import { createHash } from 'node:crypto';

const mark = 'sandbox:';

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** A base64 seal over a text, which carries the text itself. Same text, same seal. */
export function seal(text: string): string {
  return Buffer.from(`${mark}${digest(mark + text)}:${text}`).toString('base64');
}

/** The sealed text; undefined if this vendor did not make the seal, or if it was changed. */
export function unseal(sealed: string): string | undefined {
  const opened = Buffer.from(sealed, 'base64').toString();
  if (!opened.startsWith(mark)) return undefined;
  const end = opened.indexOf(':', mark.length);
  const text = opened.slice(end + 1);
  return end > 0 && opened.slice(mark.length, end) === digest(mark + text) ? text : undefined;
}

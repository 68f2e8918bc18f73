/** References as vendors' protocols carry them. Pure. */
import type { Reference } from './adapters.ts';

/** An address, or the bytes as a data URL. */
export function addressOf({ source }: Reference): string {
  return 'url' in source ? source.url : `data:${source.mediaType};base64,${source.base64}`;
}

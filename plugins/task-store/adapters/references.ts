/** What a client shows a model, as vendors' protocols carry it. Pure. */
import type { Reference } from '../contract.ts';
import { unsupported } from './refuse.ts';

/** An address, or the bytes as a data URL. */
export function addressOf({ source }: Reference): string {
  return 'url' in source ? source.url : `data:${source.mediaType};base64,${source.base64}`;
}

/** The bytes; those of an address have been fetched by now. */
export function bytesOf({ source, field }: Reference): { readonly base64: string; readonly mediaType: string } {
  if ('base64' in source) return source;
  throw unsupported('The model cannot be given this reference by its address.', field);
}

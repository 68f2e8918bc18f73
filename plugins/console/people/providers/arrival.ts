/** A person who comes back from a provider, as long as the answer to their request is made. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { OidcProvider } from '../../config.ts';
import type { Claims } from './claims.ts';

interface Arrival {
  /** Set when the provider's answer was found right. */
  vouched?: { readonly provider: OidcProvider; readonly claims: Claims };
}

export const arrival = new AsyncLocalStorage<Arrival>();

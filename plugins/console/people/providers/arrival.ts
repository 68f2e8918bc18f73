/** A request that leads through a provider, until its answer is made: who was vouched for, and the way to the provider. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Host } from '../../../../core/contract/contract.ts';
import type { OidcProvider } from '../../config.ts';
import type { Claims } from './claims.ts';

/** A person whom a provider without tokens has signed in. `next`: path of the page that they come back to. */
export interface Asserting {
  readonly provider: OidcProvider;
  readonly claims: Claims;
  readonly next: string;
}

interface Arrival {
  readonly fetch: Host['fetch'];
  readonly asserting?: Asserting;
  /** Set when the provider's answer was found right. */
  vouched?: { readonly provider: OidcProvider; readonly claims: Claims };
}

export const arrival = new AsyncLocalStorage<Arrival>();

let isLed = false;

/**
 * better-auth asks providers by the global `fetch`, and can be given no other one. In these requests it is the gateway's own: bounded, and by
 * `outbound.proxy`. Operators write the address of a provider, and it may be on their own network.
 */
export function leadFetch(): void {
  if (isLed) return;
  isLed = true;
  const direct = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const store = arrival.getStore();
    if (store === undefined) return direct(input, init);
    const { method, body, headers, signal } = init ?? {};
    return store.fetch(String(input instanceof Request ? input.url : input), {
      method: method === 'POST' ? 'POST' : 'GET',
      headers: Object.fromEntries(new Headers(headers)),
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      ...(signal ? { signal } : {}),
      allowPrivate: true,
    });
  };
}

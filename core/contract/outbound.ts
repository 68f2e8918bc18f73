/** Requests of plugins to services outside, such as a guardrail: their options, and who measures them. */
import { defineService } from './extensions.ts';

/** Options of `host.fetch` beside the address. */
export interface FetchOptions {
  /** Default: GET. Redirects of GET and HEAD are followed, up to three; another method's answer is the redirect itself. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Lower-case names. A redirect to another origin gets none of them. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Its abort ends the request. */
  readonly signal?: AbortSignal;
  /** Milliseconds for all of it, from the connection to the body's last byte; then it rejects with a TimeoutError. Default: 10,000. */
  readonly timeoutMs?: number;
  /** Most bytes of the answer's body, unpacked; reading more rejects with Unfetchable. Default: 1 MB. */
  readonly maxBytes?: number;
  /**
   * The origin of this address may be private or on this machine, and have any port. For addresses that the operator has written, by a setting that
   * allows it; redirects elsewhere are refused as before.
   */
  readonly allowPrivate?: boolean;
}

/** A request that has its answer's head, or none. */
export interface OutboundCall {
  readonly plugin: string;
  /** `refused`: by the guard, before it was sent or at a redirect. `aborted`: by the plugin's signal. */
  readonly outcome: 'answered' | 'refused' | 'timeout' | 'aborted' | 'failed';
  /** From the call of `host.fetch` to the head. */
  readonly ms: number;
}

/** Measures the requests of all plugins. */
export interface OutboundCalls {
  watch(listener: (call: OutboundCall) => void): void;
}
export const outboundCalls = defineService<OutboundCalls>('outbound calls');

/** The console's contract: the services that ask a vendor for its models, with a key that may not be stored yet. Types alone. */
import { defineService } from '../../../../core/contract/contract.ts';
import type { Secret } from '../../../../core/contract/secret.ts';
import type { Provider } from '../upstreams.ts';

/** A vendor that is to be added, or one of the configuration (by its name alone) with another key. */
export interface VendorDraft {
  readonly name: string;
  readonly preset?: string | undefined;
  readonly speaks?: Readonly<Record<string, string>> | undefined;
  /** undefined: one of those that the configured vendor has. */
  readonly key: string | undefined;
}
/** A vendor that can be asked for its models; it is not in use by this. */
export interface VendorAccess {
  readonly provider: Provider;
  readonly key: Secret;
  readonly credential: string;
  /** Sends a GET request: to addresses of the configuration as calls are sent, else to public ones alone. */
  fetch(
    url: string,
    init: { headers: Record<string, string>; signal: AbortSignal },
  ): Promise<Pick<Response, 'ok' | 'status'> & { readonly body: AsyncIterable<Uint8Array> | null }>;
}
export interface VendorSetup {
  /** Throws a GatewayError that names the faulty setting and never the key. */
  open(draft: VendorDraft): VendorAccess;
}
export const vendorSetup = defineService<VendorSetup>('vendor setup');

export interface VendorModelView {
  readonly id: string;
  /** `served`: by this vendor already; `known`: the configuration has it at other vendors; `priced`: by the shipped list; `unpriced`: it is not sold until it has a price. */
  readonly state: 'served' | 'known' | 'priced' | 'unpriced';
  /** Its members in a gateway file. */
  readonly entry: Readonly<Record<string, unknown>>;
}
export interface VendorAnswer {
  readonly ok: boolean;
  /** Status of the vendor's refusal; undefined: none came, or it answered. */
  readonly status: number | undefined;
  /** Why there is no list, with the beginning of the vendor's own words, without its key. */
  readonly error: string | undefined;
  /** The address is private and not in the configuration, so nothing was sent. */
  readonly isPrivate: boolean;
  readonly tookMs: number;
  readonly models: readonly VendorModelView[];
  /** Ids of models that are no chat models by their names. */
  readonly others: readonly string[];
}
export interface VendorLists {
  /** Failures of the vendor are answers. */
  read(access: VendorAccess): Promise<VendorAnswer>;
}
export const vendorLists = defineService<VendorLists>('lists of vendors');

/** The console's contract: the service that keeps keys of vendors. It takes texts and never gives one back. Types alone. */
import { defineService } from '../../../../core/contract/contract.ts';

export interface VendorSecretView {
  readonly name: string;
  /** `unreadable`: it was sealed with a key that this gateway does not have; `missing`: settings name it, and nothing is stored. */
  readonly state: 'stored' | 'unreadable' | 'missing';
  /** Empty for short secrets and files of credentials. */
  readonly lastFour: string;
  readonly fingerprint: string;
  readonly setAt: number | undefined;
  readonly setBy: string | undefined;
  /** Providers that name it. */
  readonly usedBy: readonly string[];
  /** Earlier ones that are still used beside it. */
  readonly older: readonly OlderSecretView[];
}
interface OlderSecretView {
  readonly lastFour: string;
  readonly fingerprint: string;
  readonly until: number | undefined;
  /** Until the newest has answered a call, and at most until `until`. */
  readonly untilWorked: boolean;
}
/** How long the secret that is replaced is used beside the new one, in milliseconds; `worked`: until the new one has answered. */
export type SecretOverlap = number | 'worked';
export interface VendorSecrets {
  list(): readonly VendorSecretView[];
  /** Stores a secret, or replaces the one of this name. `isNew`: it must not exist. In use in every process within a second. */
  set(name: string, text: string, by: string, overlap: SecretOverlap, isNew?: boolean): Promise<VendorSecretView>;
  /** Removes it with its earlier ones; `not_found` if there is none. */
  remove(name: string): Promise<void>;
}
export const vendorSecrets = defineService<VendorSecrets>('vendor secrets');

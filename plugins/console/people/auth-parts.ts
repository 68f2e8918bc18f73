/** What the sign-in is made of. Types alone. */
import type { Host } from '../../../core/contract/contract.ts';
import type { JoinCompany } from '../company/joining.ts';
import type { RequiredProvider } from '../company/types.ts';
import type { OidcProvider } from '../config.ts';
import type { Links } from './links.ts';
import type { Mailer } from './mail.ts';
import type { ClaimedParts } from './providers/claimed.ts';
import type { Discovered } from './providers/discovery.ts';
import type { MailDomains } from './providers/mail-domains.ts';
import type { Secrets } from './secrets.ts';
import type { Throttle } from './throttle.ts';

/** A provider, and what it says of itself. */
export interface FoundProvider {
  readonly provider: OidcProvider;
  readonly discovered: Discovered;
}

export interface AuthParts extends ClaimedParts {
  readonly fetch: Host['fetch'];
  readonly domains: MailDomains;
  readonly secrets: Secrets;
  readonly links: Links;
  readonly throttle: Throttle;
  readonly mailer: Mailer | undefined;
  readonly newId: () => string;
  /** Makes somebody whom the provider of an account has signed in its member. */
  readonly joinCompany: JoinCompany;
  /** The provider of a company by which alone people with this address sign in. */
  readonly requiredFor: (email: string) => Promise<RequiredProvider | undefined>;
  readonly settings: {
    readonly name: string;
    readonly cookiePrefix: string;
    readonly sessionMs: number;
    readonly throttle: { readonly perAddress: number; readonly perAccount: number; readonly windowMs: number };
  };
}

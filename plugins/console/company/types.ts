/** What the sign-in of a company is made of. Types alone. */
import type { GrantedRole } from './config.ts';

/** People with this claim get this role; their keys are for this project. */
interface GroupRule {
  readonly claim: string | readonly string[];
  readonly value: string;
  readonly role: GrantedRole;
  /** Name of a project; undefined: any. */
  readonly project?: string | undefined;
}

/** An account with a provider of its own, by which its people sign in. */
export interface Company {
  readonly accountId: string;
  readonly role: GrantedRole;
  readonly groups: readonly GroupRule[];
  /** Its owner has written the address of the provider, not the operator. */
  readonly isForeign: boolean;
  /** Domains that DNS says no more are the account's: they bring in no one new. */
  readonly lapsed: readonly string[];
}

export interface DomainView {
  readonly domain: string;
  readonly token: string;
  readonly verifiedAt: number | undefined;
  /** Since when its record has been gone. */
  readonly missingSince: number | undefined;
}

/** An identity provider for SAML 2.0. */
export interface SamlSettings {
  readonly entityId: string;
  /** Where people are sent. */
  readonly entry: string;
  /** In PEM; a signature by any of them counts. */
  readonly certificates: readonly string[];
  /** Name of the attribute with the mail address; empty: one of the usual ones, or the NameID. */
  readonly emailAttribute: string;
  /** Where its metadata is read again; empty: they were pasted. */
  readonly metadataUrl: string;
}

/** As its owner writes it. */
export interface ProviderSettings {
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly verifiedClaim: string;
  readonly role: GrantedRole;
  readonly groups: readonly GroupRule[];
  /** Set for one that speaks SAML: it has no client, and its issuer is its entity id. */
  readonly saml?: SamlSettings | undefined;
}

export interface ProviderOfAccount extends ProviderSettings {
  readonly id: string;
}

/** The provider by which alone people of a domain sign in. */
export interface RequiredProvider {
  readonly id: string;
  readonly name: string;
}

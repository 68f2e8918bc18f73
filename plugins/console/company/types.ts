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
}

export interface DomainView {
  readonly domain: string;
  readonly token: string;
  readonly verifiedAt: number | undefined;
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
}

export interface ProviderOfAccount extends ProviderSettings {
  readonly id: string;
}

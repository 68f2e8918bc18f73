/** Providers as operators see them: what to register there, whom they are for, and whether they answer as they should. */
import type { Host } from '../../../../core/contract/contract.ts';
import type { ConsoleConfig } from '../../config.ts';
import { authPath } from '../auth-names.ts';
import { discover, ProviderFault } from './discovery.ts';

interface ProviderView {
  readonly id: string;
  readonly name: string;
  readonly issuer: string;
  /** What is registered at the provider: where people come back to, signed in and signed out. */
  readonly redirectUri: string;
  readonly signedOutUri: string;
  readonly domains: readonly string[];
  /** Domains where people have no passwords. */
  readonly withoutPasswords: readonly string[];
  readonly signOut: 'console' | 'provider';
}

export interface ProviderAdmin {
  list(): readonly ProviderView[];
  /** Reads what the provider says of itself. undefined: there is no such provider. */
  test(id: string): Promise<{ readonly problem: string | undefined } | undefined>;
}

export function providerAdmin(
  { oidc, domains, origin }: Pick<ConsoleConfig, 'oidc' | 'domains' | 'origin'>,
  fetch: Host['fetch'],
): ProviderAdmin {
  const isOff = (name: string) => domains.some(({ domain, passwords }) => domain === name && passwords === 'off');
  return {
    list: () =>
      oidc.map(({ id, name, issuer, domains: own, sign_out }) => ({
        id,
        name,
        issuer,
        redirectUri: `${origin}${authPath}/callback/${id}`,
        signedOutUri: `${origin}/console/sign-in`,
        domains: own,
        withoutPasswords: own.filter(isOff),
        signOut: sign_out,
      })),
    async test(id) {
      const provider = oidc.find((one) => one.id === id);
      if (provider === undefined) return undefined;
      try {
        const { endSession } = await discover(fetch, provider.issuer);
        const cannotEnd = provider.sign_out === 'provider' && endSession === undefined;
        return {
          problem: cannotEnd ? 'it has no address for signing out: sign_out: provider does nothing' : undefined,
        };
      } catch (error) {
        if (error instanceof ProviderFault) return { problem: error.message };
        throw error;
      }
    },
  };
}

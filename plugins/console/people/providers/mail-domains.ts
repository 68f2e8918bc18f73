/** What holds for the mail addresses of a domain: how its people sign up, by what they sign in, and which provider vouches for them. Pure. */
import type { ConsoleConfig, OidcProvider } from '../../config.ts';
import type { SignUpPolicy } from '../sign-up.ts';

/** Part behind the last `@`, in small letters. */
export function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1).toLowerCase();
}

/** Printable ASCII with one `@`. Other letters can look like these, or become these in small letters: U+212A is a `k`. */
export function isPlainAddress(email: unknown): email is string {
  return (
    typeof email === 'string' && email.length <= 200 && /^[!-?A-~]+@[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i.test(email)
  );
}

export type MailDomains = ReturnType<typeof mailDomains>;

export function mailDomains({ sign_up, domains, oidc }: Pick<ConsoleConfig, 'sign_up' | 'domains' | 'oidc'>) {
  const rules = new Map(domains.map((rule) => [rule.domain, rule]));
  const providersOf = (email: string): OidcProvider[] => {
    const domain = domainOf(email);
    return oidc.filter((provider) => provider.domains.includes(domain));
  };
  return {
    /** Names of the providers that alone vouch for addresses of this domain; none: each provider may. */
    providersOf,

    /** `vouched`: by a provider that this address belongs to; `owner`: by one that the owner of an account has set up. */
    signUpOf(email: string, vouched: boolean | 'owner'): SignUpPolicy {
      if (vouched === 'owner') return sign_up === 'closed' ? 'closed' : 'open';
      return rules.get(domainOf(email))?.sign_up ?? (vouched && providersOf(email).length > 0 ? 'open' : sign_up);
    },

    /** People of this domain sign in by their provider alone. */
    byProviderOnly: (email: string) => rules.get(domainOf(email))?.passwords === 'off',

    /** What they read who try a password. */
    askProvider(email: string): string {
      const names = providersOf(email).map(({ name }) => name);
      return `People with an address of ${domainOf(email)} have no password here: they sign in with ${names.join(' or ')}.`;
    },
  };
}

/** Whether a mail domain belongs to an account: a TXT record that only those who run the domain can write. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { ConsoleConfig } from '../config.ts';
import { recordOf, recordsOf } from './records.ts';
import type { CompanyStore } from './store.ts';

const mostDomains = 10;
const pattern = /^(?=.{4,190}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;

interface Parts {
  readonly store: CompanyStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: Pick<ConsoleConfig, 'companies' | 'oidc' | 'domains'>;
}

export function companyDomains({ store, clock, random, settings }: Parts) {
  const has = async (accountId: string, domain: string) => {
    const found = (await store.domainsOf(accountId)).find((one) => one.domain === domain);
    if (found !== undefined) return found;
    throw new GatewayError('not_found', 'The account does not name this domain.', { field: 'domain' });
  };
  return {
    list: (accountId: string) => store.domainsOf(accountId),

    async add(accountId: string, given: string): Promise<void> {
      const domain = given.trim().toLowerCase().replace(/\.$/, '');
      if (!pattern.test(domain)) throw wrongDomain('domain: must be a domain, such as acme.example');
      refuseOperators(settings, domain);
      if ((await store.domainsOf(accountId)).length >= mostDomains)
        throw conflict(`An account has at most ${mostDomains} domains: remove one first.`);
      await store.addDomain(accountId, domain, random.bytes(24).toString('base64url'), new Date(clock.now()));
    },

    /** A domain that another account holds changes to this one only where the record of that account is gone. */
    async verify(accountId: string, domain: string): Promise<void> {
      const own = await has(accountId, domain);
      refuseOperators(settings, domain);
      const holder = await store.holderOf(domain);
      if (holder?.accountId === accountId && own.missingSince === undefined) return;
      const texts = await recordsOf(settings.companies.dns, domain);
      if (!texts.includes(recordOf(own).value))
        throw conflict(
          'The record is not there. Changes of DNS take up to a day: try again later.',
          'domain_not_verified',
        );
      const isHeld =
        holder !== undefined &&
        holder.accountId !== accountId &&
        texts.includes(recordOf({ domain, token: holder.token }).value);
      const from = holder?.accountId === accountId ? undefined : holder?.accountId;
      if (isHeld || !(await store.verify(accountId, domain, new Date(clock.now()), from)))
        throw conflict('Another account has this domain, and its record is still there.', 'domain_taken');
    },

    async remove(accountId: string, domain: string): Promise<void> {
      await has(accountId, domain);
      await store.removeDomain(accountId, domain);
    },
  };
}

/** What the operator has decided about a domain stays the operator's. */
function refuseOperators({ oidc, domains }: Parts['settings'], domain: string): void {
  if (oidc.some((one) => one.domains.includes(domain)) || domains.some((one) => one.domain === domain))
    throw conflict('The operator of this gateway has set up this domain.', 'domain_taken');
}

const wrongDomain = (message: string) => new GatewayError('invalid_request', message, { field: 'domain' });
const conflict = (message: string, code?: string) =>
  new GatewayError('conflict', message, { field: 'domain', ...(code === undefined ? {} : { code }) });

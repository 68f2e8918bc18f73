/** Providers of accounts: kept sealed, and found when somebody signs in by one. */
import { hash } from 'node:crypto';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { ConsoleConfig, OidcProvider } from '../config.ts';
import { openText, sealText } from '../config-history/seal.ts';
import { discover, ProviderFault } from '../people/providers/discovery.ts';
import { domainOf } from '../people/providers/mail-domains.ts';
import type { Secrets } from '../people/secrets.ts';
import { accounts } from '../services.ts';
import { requireProvider } from './required.ts';
import type { CompanyStore, SealedProvider } from './store.ts';
import type { ProviderOfAccount, ProviderSettings, RequiredProvider, SamlSettings } from './types.ts';
import { isLapsed } from './watch.ts';

export interface CompanyParts {
  readonly host: Pick<Host, 'find' | 'fetch'>;
  readonly store: CompanyStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly secrets: () => Secrets;
  readonly settings: Pick<ConsoleConfig, 'companies' | 'oidc' | 'domains'>;
}

/** Known before there is a provider, since it is in the address that is registered there. */
export const providerIdOf = (accountId: string) => `company-${hash('sha256', accountId).slice(0, 16)}`;

const viewOf = ({ id, settings }: SealedProvider): ProviderOfAccount => ({
  ...(JSON.parse(settings) as ProviderSettings),
  id,
});

export const companyProviders = (parts: CompanyParts) => ({ ...ownProvider(parts), ...waysIn(parts) });

/** What its owner sees and sets. */
function ownProvider(parts: CompanyParts) {
  const { store } = parts;
  return {
    async of(accountId: string): Promise<ProviderOfAccount | undefined> {
      const row = await store.providerOf(accountId);
      return row && viewOf(row);
    },

    /** Without a secret the one before stays, as long as the provider is the same. */
    save: (accountId: string, wanted: ProviderSettings, secret: string | undefined) =>
      saved(parts, accountId, wanted, secret),

    /** By its metadata, or the address of these. */
    saveSaml: (accountId: string, wanted: SamlWanted) => savedSaml(parts, accountId, wanted),

    async remove(accountId: string): Promise<void> {
      const row = await store.providerOf(accountId);
      if (row !== undefined) await store.removeProvider(row.id);
    },

    /** Why it cannot be used now. */
    async problem(accountId: string): Promise<string | undefined> {
      const row = await store.providerOf(accountId);
      if (row === undefined) throw noProvider();
      const { issuer, saml } = viewOf(row);
      return saml === undefined ? problemOf(parts, issuer) : problemOfSaml(parts, saml);
    },

    isRequired: (accountId: string): Promise<boolean> => store.isRequired(accountId),

    /** Sessions that began another way end when it is turned on. */
    async require(accountId: string, wanted: boolean): Promise<void> {
      const row = await store.providerOf(accountId);
      if (row === undefined) throw noProvider();
      if (wanted) await requireProvider(store, accountId, row.id);
      else await store.setRequired(accountId, false);
    },
  };
}

/** By which people come in. */
function waysIn(parts: CompanyParts) {
  const { store, settings } = parts;
  return {
    /** For people who give their address; undefined: their domain is of no account. */
    async named(email: string): Promise<{ readonly id: string; readonly name: string } | undefined> {
      if (!settings.companies.sign_in) return undefined;
      return store.providerFor(domainOf(email));
    },

    exist: async (): Promise<boolean> => settings.companies.sign_in && (await store.countProviders()) > 0,

    /** By which alone people with this address sign in. What the operator has set up for a domain counts before. */
    async requiredFor(email: string): Promise<RequiredProvider | undefined> {
      const domain = domainOf(email);
      const { companies, oidc, domains } = settings;
      if (!companies.sign_in || oidc.some((one) => one.domains.includes(domain))) return undefined;
      return domains.some((one) => one.domain === domain) ? undefined : store.requiredFor(email);
    },

    /** As the sign-in takes it. undefined: there is none, or no domain of its account is verified. */
    async found(providerId: string): Promise<OidcProvider | undefined> {
      if (!settings.companies.sign_in || !providerId.startsWith('company-')) return undefined;
      const row = await store.provider(providerId);
      if (row === undefined) return undefined;
      const domains = (await store.domainsOf(row.accountId)).filter(({ verifiedAt }) => verifiedAt !== undefined);
      const secret = openText(row.sealed, row.id, parts.secrets());
      // Without domains it would vouch for all addresses.
      if (domains.length === 0 || secret === undefined) return undefined;
      const now = parts.clock.now();
      const lapsed = domains.filter((one) => isLapsed(one, now)).map(({ domain }) => domain);
      const { issuer, clientId, scopes, verifiedClaim, role, groups, saml } = viewOf(row);
      return {
        ...{ id: row.id, name: row.name, issuer, client_id: clientId, client_secret: secret, scopes: [...scopes] },
        ...{ domains: domains.map(({ domain }) => domain), verified_claim: verifiedClaim, roles: [], plans: [] },
        ...{ sign_out: 'console', account: '', member: role, members: [], place: row.id },
        ...(saml && { saml }),
        company: { accountId: row.accountId, role, groups, isForeign: true, lapsed },
      };
    },

    /** A provider of the file that is for one account, with that account. Throws where there is none of its name. */
    async placed(provider: OidcProvider): Promise<OidcProvider> {
      const { account, member: role, members: groups } = provider;
      if (account === '') return provider;
      const found = await parts.host.find(accounts)?.find(account);
      if (found !== undefined)
        return { ...provider, company: { accountId: found.id, role, groups, isForeign: false, lapsed: [] } };
      throw new GatewayError('not_found', 'The account of this provider is not there.', { code: 'no_account' });
    },
  };
}

const noProvider = () => new GatewayError('not_found', 'The account has no provider.', { field: 'id' });

async function saved(
  parts: CompanyParts,
  accountId: string,
  wanted: ProviderSettings,
  secret: string | undefined,
): Promise<void> {
  const { store, settings } = parts;
  refuseNotOffered(settings);
  refuseAddress(settings.companies.private_providers, wanted.issuer);
  const before = await store.providerOf(accountId);
  const isSame = before !== undefined && isOne(viewOf(before), wanted);
  const known = isSame ? openText(before.sealed, before.id, parts.secrets()) : undefined;
  const kept = secret ?? known;
  if (kept === undefined)
    throw new GatewayError('invalid_request', 'clientSecret: is missing', { field: 'clientSecret' });
  await refuseUnusable(parts, wanted.issuer);
  await keep(parts, accountId, wanted, kept);
}

interface SamlWanted extends Pick<ProviderSettings, 'name' | 'role' | 'groups'> {
  /** XML, or its address. */
  readonly metadata: string;
  readonly emailAttribute: string;
}

async function savedSaml(parts: CompanyParts, accountId: string, wanted: SamlWanted): Promise<void> {
  refuseNotOffered(parts.settings);
  const { settingsBy } = await import('./saml/setting.ts');
  const { metadata, emailAttribute, ...given } = wanted;
  const saml = await settingsBy(readingOf(parts), metadata, emailAttribute);
  // An earlier version of this gateway reads these as a provider that it cannot reach.
  const client = { issuer: saml.entityId, clientId: '', scopes: [], verifiedClaim: 'email_verified' };
  await keep(parts, accountId, { ...given, ...client, saml }, '');
}

async function problemOfSaml(parts: CompanyParts, saml: SamlSettings): Promise<string | undefined> {
  if (saml.metadataUrl === '') return undefined;
  const { settingsAgain } = await import('./saml/setting.ts');
  try {
    await settingsAgain(readingOf(parts), saml);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error.message;
    throw error;
  }
}

const readingOf = ({ host, clock, settings: { companies } }: CompanyParts) => ({
  fetch: guardedFetch(host.fetch, companies.private_providers),
  isAnyAllowed: companies.private_providers,
  now: clock.now(),
});

function refuseNotOffered({ companies }: CompanyParts['settings']): void {
  if (companies.sign_in) return;
  throw new GatewayError('not_found', 'On this gateway the operator sets up providers.', { code: 'not_available' });
}

/** One name may be of a provider for OpenID Connect and of one for SAML, which name people differently. */
const isOne = (before: ProviderSettings, after: ProviderSettings) =>
  before.issuer === after.issuer && (before.saml === undefined) === (after.saml === undefined);

async function keep(parts: CompanyParts, accountId: string, wanted: ProviderSettings, secret: string): Promise<void> {
  const { store, clock, random } = parts;
  const before = await store.providerOf(accountId);
  // Identities of another provider are not those of this one, even where their names are the same.
  if (before !== undefined && !isOne(viewOf(before), wanted)) await store.removeProvider(before.id);
  const id = providerIdOf(accountId);
  const sealed = sealText(secret, id, parts.secrets(), random);
  const row = { id, name: wanted.name, settings: JSON.stringify(wanted), sealed };
  await store.saveProvider(accountId, row, new Date(clock.now()));
}

function refuseAddress(isAnyAllowed: boolean, issuer: string): void {
  if (isAnyAllowed || issuer.startsWith('https:')) return;
  throw new GatewayError('invalid_request', 'issuer: must begin with https://', { field: 'issuer' });
}

async function refuseUnusable(parts: CompanyParts, issuer: string): Promise<void> {
  const problem = await problemOf(parts, issuer);
  if (problem === undefined) return;
  throw new GatewayError('invalid_request', `issuer: ${problem}`, { field: 'issuer', code: 'provider_unusable' });
}

async function problemOf(parts: CompanyParts, issuer: string): Promise<string | undefined> {
  try {
    await discover(guardedFetch(parts.host.fetch, parts.settings.companies.private_providers), issuer);
    return undefined;
  } catch (error) {
    if (!(error instanceof ProviderFault)) throw error;
    // What stands on a private address is not for owners to learn.
    return error.message.startsWith('it could not be reached') ? 'it could not be reached' : error.message;
  }
}

/** Owners of accounts write addresses that the gateway then asks: none of its own network. */
export const guardedFetch =
  (fetch: Host['fetch'], allowPrivate: boolean): Host['fetch'] =>
  (address, options) =>
    fetch(address, { ...options, allowPrivate });

/** Their secrets with the first of the console's. */
export async function sealProvidersAgain(store: CompanyStore, secrets: Secrets, random: Random) {
  let left = 0;
  const rows = await store.sealedProviders();
  for (const { id, sealed } of rows) {
    const text = openText(sealed, id, secrets);
    if (text === undefined) left += 1;
    else await store.sealAgain(id, sealed, sealText(text, id, secrets, random));
  }
  return { done: rows.length - left, left };
}

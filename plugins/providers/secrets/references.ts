/** `secret:NAME` in the settings of a provider: what it stands for, at one place. Pure. */
import type { Notice } from '../../../core/contract/contract.ts';
import { isUsable } from '../../../core/tools/network-config.ts';
import type { VendorSecretView } from '../../common/domain/admin/vendor-secrets.ts';
import { howToOpen } from '../../common/kit/secrets/sealing.ts';
import type { ProviderConfig, ProvidersConfig } from '../config.ts';
import { referenceIn } from './reference-text.ts';

export interface SecretLookup {
  /** The texts that a name stands for now, the first preferred; none: it is not stored, or cannot be decrypted. */
  texts(name: string): readonly string[];
  state(name: string): VendorSecretView['state'];
  /** For `check`, where no gateway has written the names: none is known. */
  readonly isUnknown?: boolean;
}

/** The provider with what its references stand for; without any key where a header or a setting of `auth` has none. */
export function filledIn(section: ProviderConfig, { texts }: SecretLookup): ProviderConfig {
  if (namesIn(section).length === 0) return section;
  const filled = section.keys.flatMap((key, index) => {
    const name = referenceIn(key);
    const found = name === undefined ? [key] : texts(name);
    return found.map((text) => ({ text, proxy: section.keyProxies[index] }));
  });
  let isWhole = true;
  const deep = (value: unknown): unknown => {
    if (typeof value === 'string') {
      const name = referenceIn(value);
      if (name === undefined) return value;
      const [newest] = texts(name);
      isWhole &&= newest !== undefined;
      return newest ?? '';
    }
    if (Array.isArray(value)) return value.map(deep);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, deep(inner)]));
  };
  const { headers, auth, proxy, tls } = section;
  const same = <T>(value: T) => deep(value) as T;
  const others = { headers: same(headers), auth: same(auth), proxy: same(proxy), tls: same(tls) };
  const proxied = filled.map((key) => ({ ...key, proxy: same(key.proxy) }));
  // Never by another way than the one that is written.
  const isReached = [others.proxy, ...proxied.map((key) => key.proxy)].every((one) =>
    isUsable({ proxy: one, tls: others.tls }),
  );
  const keys = isWhole && isReached ? proxied : [];
  return { ...section, ...others, keys: keys.map(({ text }) => text), keyProxies: keys.map(({ proxy }) => proxy) };
}

/** Names of the secrets that a provider's settings refer to. */
export function namesIn({ keys, headers, auth, proxy, keyProxies, tls }: ProviderConfig): string[] {
  const found: string[] = [];
  const look = (value: unknown): void => {
    if (typeof value === 'string') found.push(...[referenceIn(value) ?? []].flat());
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(look);
  };
  look([keys, headers, auth, proxy, keyProxies, tls]);
  return [...new Set(found)];
}

const unknownNames =
  'which secrets are stored is not known here ("check" opens no database, and no gateway has written their names to its data directory)';

/** What is missing of the secrets that settings refer to. */
export function secretNotices(config: ProvidersConfig, lookup: SecretLookup): Notice[] {
  const named = [...new Set(Object.values(config).flatMap(namesIn))];
  if (lookup.isUnknown === true)
    return named.length === 0 ? [] : [{ level: 'info', text: `${unknownNames}: ${named.join(', ')}` }];
  return Object.entries(config).flatMap(([provider, section]) => {
    const isLeftOut = filledIn(section, lookup).keys.length === 0;
    return namesIn(section).flatMap((name): Notice[] => {
      const state = lookup.state(name);
      // A provider without any key is named with the others.
      if (state === 'stored' || (state === 'missing' && isLeftOut)) return [];
      const then = isLeftOut ? 'it is left out' : 'its other keys are used';
      const what = state === 'missing' ? `there is no secret "${name}"` : `the secret "${name}" cannot be decrypted`;
      const how = state === 'missing' ? `"gateway providers secret set ${name}" stores it` : howToOpen;
      return [{ level: 'warning', text: `provider "${provider}": ${what}, ${then}: ${how}`, path: [provider, 'keys'] }];
    });
  });
}

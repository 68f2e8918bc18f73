/** Mistakes in the settings of vendors that the shape of a section does not show: unknown protocols, wrong base URLs. */
import type { Fault, Notice } from '../../core/contract/contract.ts';
import type { SectionPart } from '../../core/contract/remarks.ts';
import { didYouMean } from '../../core/tools/near-names.ts';
import { type LocalUpstreams, localUpstreams } from '../common/domain/upstreams.ts';
import { type CredentialScheme, vendorCredentials } from '../common/wire/credentials.ts';
import { wireProtocols } from '../common/wire/protocols.ts';
import { parseLocal } from './addresses.ts';
import { authsOf, isOneAuth, type ProviderConfig, type ProvidersConfig } from './config.ts';

/** The protocols with vendors that the plugins of the list provide. */
export interface Spoken {
  /** Their paths; undefined: no plugin of the list provides chat protocols. */
  readonly paths: ReadonlyMap<string, string> | undefined;
  /** A name that may belong to a plugin that is not in the list. */
  isElsewhere(name: string): boolean;
}

type Paths = ReadonlyMap<string, string> | undefined;

/** Protocol names of plugins that are not in the list: entries with them are ignored. */
const mediaName = /-(?:images|videos)$/;
const endpointName = /-(?:embeddings|rerank|decisions|systemone|moderations|speech|transcriptions)$/;
const sessionName = /-(?:realtime|live)$/;

export function spokenBy(chat: Paths, media: Paths, endpoints: Paths, sessions: Paths): Spoken {
  const others = [
    { paths: media, name: mediaName },
    { paths: endpoints, name: endpointName },
    { paths: sessions, name: sessionName },
  ];
  return {
    paths: chat && new Map([...chat, ...others.flatMap(({ paths }) => [...(paths ?? [])])]),
    isElsewhere: (protocol) => others.some(({ paths, name }) => paths === undefined && name.test(protocol)),
  };
}

/** An optional provider without a key may need plugins that are not in the list. */
function inUse(config: ProvidersConfig): [provider: string, section: ProviderConfig][] {
  return Object.entries(config).filter(([, { optional, keys }]) => !optional || keys.length > 0);
}

/** Faults that prevent the start. */
export function providerFaults(config: ProvidersConfig, spoken: Spoken): Fault[] {
  return inUse(config).flatMap(([provider, section]) => [
    ...unknownProtocols(provider, section, spoken),
    ...Object.entries(section.speaks).flatMap(([protocol, url]) => [
      ...endpointInUrl([provider, 'speaks', protocol], url, spoken.paths?.get(protocol)),
      ...placeholderInUrl([provider, 'speaks', protocol], url),
    ]),
  ]);
}

/** Addresses of vendors inside this process, which another plugin runs. One fault for each vendor's name. */
export function localFaults(config: ProvidersConfig, local: LocalUpstreams | undefined): Fault[] {
  const wanted = Object.entries(config)
    .filter(([, { keys }]) => keys.length > 0)
    .flatMap(([provider, { speaks }]) =>
      Object.entries(speaks).flatMap(([protocol, url]) => {
        const name = parseLocal(url)?.name;
        return name === undefined ? [] : [{ name, path: [provider, 'speaks', protocol] }];
      }),
    );
  return [...Map.groupBy(wanted, ({ name }) => name)].flatMap(([name, places]): Fault[] => {
    const { path } = places[0]!;
    const more = places.length === 1 ? '' : ` (and ${places.length - 1} more)`;
    if (local === undefined) {
      const message = `"${name}:"${more} needs the service "${localUpstreams.name}", which no plugin of the list provides`;
      return [{ path, message, lacks: { service: localUpstreams } }];
    }
    if (local.names.includes(name)) return [];
    const hint = didYouMean(name, local.names) || `; known are ${local.names.join(', ')}`;
    return [{ path, message: `no vendor "${name}"${more} runs inside this process${hint}` }];
  });
}

/** Faults of `auth` and the keys that it needs. */
export function credentialFaults(
  config: ProvidersConfig,
  schemes: ReadonlyMap<string, CredentialScheme>,
): (Fault | SectionPart)[] {
  return inUse(config).flatMap(([provider, { auth, isKeyless }]) =>
    authsOf(auth).flatMap(([below, { scheme: name, ...settings }]): (Fault | SectionPart)[] => {
      const path = [provider, 'auth', ...below];
      const scheme = schemes.get(name);
      if (scheme === undefined) return unknownScheme([...path, 'scheme'], name, schemes);
      const part: SectionPart = { path, schema: scheme.config, value: settings };
      if (!isKeyless || 'needsNoKey' in scheme) return [part];
      return [part, { path: [provider, 'keys'], message: `is missing: the scheme "${name}" needs a key` }];
    }),
  );
}

function unknownScheme(path: string[], name: string, schemes: ReadonlyMap<string, CredentialScheme>): Fault[] {
  const known = didYouMean(name, schemes.keys()) || `; known are ${[...schemes.keys()].join(', ')}`;
  return [{ path, message: `there is no scheme "${name}"${known}`, lacks: { point: vendorCredentials, name } }];
}

/** Settings that have no effect, or are probably mistakes. */
export function providerWarnings(config: ProvidersConfig, spoken: Spoken): Notice[] {
  return inUse(config).flatMap(([provider, section]) =>
    [
      ...doubledVersion(provider, section, spoken),
      ...unspoken(provider, section, spoken),
      ...doubtfulKeys(provider, section),
    ].map((text): Notice => ({ level: 'warning', text })),
  );
}

function unknownProtocols(provider: string, section: ProviderConfig, spoken: Spoken): Fault[] {
  const { paths } = spoken;
  if (paths === undefined) return [];
  return Object.entries(byProtocol(section)).flatMap(([setting, names]) =>
    names
      .filter((name) => !paths.has(name) && !spoken.isElsewhere(name))
      .map((name) => unknownProtocol([provider, setting, name], name, paths)),
  );
}

function unknownProtocol(path: string[], name: string, paths: ReadonlyMap<string, string>): Fault {
  const near = didYouMean(name, paths.keys());
  const message = `there is no protocol "${name}"${near || `; known are ${[...paths.keys()].join(', ')}`}`;
  return near === '' ? { path, message, lacks: { point: wireProtocols, name } } : { path, message };
}

/** The settings that name protocols. */
function byProtocol({ speaks, dialect, drop_fields: dropFields, auth }: ProviderConfig): Record<string, string[]> {
  const isByProtocol = auth !== undefined && !isOneAuth(auth);
  return {
    speaks: Object.keys(speaks),
    dialect: Object.keys(dialect),
    drop_fields: Object.keys(dropFields),
    auth: isByProtocol ? Object.keys(auth) : [],
  };
}

/** Endings of addresses that a vendor's page shows for a call; the gateway adds them to the base URL. */
const endpointPattern =
  /(?:\/v1\/messages(?:\/count_tokens)?|\/(?:chat\/completions|completions|responses|messages|embeddings|rerank|decisions|systemone|moderations|audio\/(?:speech|transcriptions|translations)|models(?:\/[^/]+:\w+)?|images\/(?:generations|edits)|videos\/generations|contents\/generations\/tasks))$/;

/** `called`: the path that the protocol adds. */
function endpointInUrl(path: string[], url: string, called: string | undefined): Fault[] {
  const isCalled = called !== undefined && called !== '' && pathOf(url).endsWith(called);
  const ending = isCalled ? called : endpointPattern.exec(pathOf(url))?.[0];
  if (ending === undefined) return [];
  const base = url.replace(ending, '');
  const message = `ends in "${ending}", which the gateway adds by itself: write ${base}`;
  return [{ path, message }];
}

/** As base URLs are written in `config/vendors.yaml` and on vendors' pages. */
const placeholder = /\b(?:PROJECT|RESOURCE|REGION|ACCOUNT)\b/;

function placeholderInUrl(path: string[], url: string): Fault[] {
  const [name] = placeholder.exec(url) ?? [];
  if (name === undefined) return [];
  return [{ path, message: `still has "${name}" in ${url}: write your own there` }];
}

function doubledVersion(provider: string, { speaks }: ProviderConfig, { paths }: Spoken): string[] {
  return Object.entries(speaks).flatMap(([protocol, url]) => {
    const [version] = /^\/v\d+/.exec(paths?.get(protocol) ?? '') ?? [];
    if (version === undefined || !pathOf(url).endsWith(version)) return [];
    const address = url.replace(/\?.*$/, '') + paths!.get(protocol)!;
    return `providers.${provider}.speaks.${protocol}: calls go to ${address}; if "${version}" stands there once too often, write ${url.replace(new RegExp(`${version}(?=$|\\?)`), '')}`;
  });
}

function unspoken(provider: string, section: ProviderConfig, { paths }: Spoken): string[] {
  const { speaks, ...settings } = byProtocol(section);
  return Object.entries(settings).flatMap(([setting, names]) =>
    names
      .filter((name) => paths?.has(name) && !speaks!.includes(name))
      .map((name) => `providers.${provider}.${setting}.${name} has no effect: "${name}" is not under speaks`),
  );
}

/** Placeholders of keys in vendors' examples. */
const exampleKey =
  /^(?:sk-)?(?:\.{3,}|x{3,}|\*{3,}|<[^>]*>|your[-_].*|change[-_]?me|replace[-_]?me|insert[-_].*|undefined|null)$/i;

/** Keys that a vendor surely refuses; each is described by its fault, never shown. */
function doubtfulKeys(provider: string, { keys }: ProviderConfig): string[] {
  const odd = (key: string) => {
    if (key.startsWith('{')) return undefined;
    if (exampleKey.test(key)) return 'is the placeholder of an example: write the key itself';
    if (/^[A-Z][A-Z0-9]*_[A-Z0-9_]*=/.test(key))
      return 'begins with the name of a variable: write what stands behind "="';
    if (/^https?:\/\//.test(key)) return 'is an address: write the key itself';
    return /^[^,]{8,}(?:,[^,]{8,})+$/.test(key) ? 'has a comma inside: write several keys as a list' : undefined;
  };
  return keys.flatMap((key, index) => {
    const found = odd(key);
    const name = keys.length === 1 ? 'keys' : `keys.${index}`;
    return found === undefined ? [] : [`providers.${provider}.${name} ${found}`];
  });
}

function pathOf(url: string): string {
  return parseLocal(url)?.path ?? new URL(url).pathname.replace(/\/+$/, '');
}

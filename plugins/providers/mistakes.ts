/** Mistakes in the settings of vendors that the shape of a section does not show: unknown protocols, wrong base URLs. */
import type { Fault, Notice } from '../../core/contract/contract.ts';
import { didYouMean } from '../../core/contract/near-names.ts';
import type { SectionPart } from '../../core/contract/remarks.ts';
import { modelMark } from '../common/kit/upstream-request.ts';
import { type CredentialScheme, vendorCredentials } from '../common/wire/credentials.ts';
import { wireProtocols } from '../common/wire/protocols.ts';
import { parseLocal } from './addresses.ts';
import { authsOf, isOneAuth, type ProviderConfig, type ProvidersConfig } from './config.ts';

/** Protocols beside chat, by name: the path, below the base URL, of the endpoint that is called most. */
export const mediaProtocols: ReadonlyMap<string, string> = new Map([
  ['openai-images', '/images/generations'],
  ['gemini-images', '/models'],
  ['xai-images', '/images/generations'],
  ['ark-images', '/images/generations'],
  ['xai-videos', '/videos/generations'],
  ['ark-videos', '/contents/generations/tasks'],
  ['openai-embeddings', '/embeddings'],
  ['gemini-embeddings', '/models'],
  ['cohere-rerank', '/rerank'],
  ['jina-rerank', '/rerank'],
  ['voyage-rerank', '/rerank'],
  ['openai-moderations', '/moderations'],
  ['openai-speech', '/audio/speech'],
  ['openai-transcriptions', '/audio/transcriptions'],
]);

/** The protocols that can be spoken with a vendor, and their paths; undefined: no plugin of the list knows them. */
export type SpokenPaths = ReadonlyMap<string, string> | undefined;

export function spokenPaths(wire: SpokenPaths): SpokenPaths {
  return wire && new Map([...wire, ...mediaProtocols]);
}

/** What prevents the start. */
export function providerFaults(config: ProvidersConfig, paths: SpokenPaths): Fault[] {
  return Object.entries(config).flatMap(([provider, section]) => [
    ...unknownProtocols(provider, section, paths),
    ...Object.entries(section.speaks).flatMap(([protocol, url]) =>
      endpointInUrl([provider, 'speaks', protocol], url, paths?.get(protocol)),
    ),
    ...mediaElsewhere(provider, section),
  ]);
}

/** What is wrong with `auth` and the keys that it needs. */
export function credentialFaults(
  config: ProvidersConfig,
  schemes: ReadonlyMap<string, CredentialScheme>,
): (Fault | SectionPart)[] {
  return Object.entries(config).flatMap(([provider, { auth, isKeyless }]) =>
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

/** What has no effect, or is probably not meant. */
export function providerWarnings(config: ProvidersConfig, paths: SpokenPaths): Notice[] {
  return Object.entries(config).flatMap(([provider, section]) =>
    [...doubledVersion(provider, section, paths), ...unspoken(provider, section, paths)].map(
      (text): Notice => ({ level: 'warning', text }),
    ),
  );
}

function unknownProtocols(provider: string, section: ProviderConfig, paths: SpokenPaths): Fault[] {
  if (paths === undefined) return [];
  return Object.entries(byProtocol(section)).flatMap(([setting, names]) =>
    names
      .filter((name) => !paths.has(name))
      .map((name) => ({
        path: [provider, setting, name],
        message: `there is no protocol "${name}"${didYouMean(name, paths.keys()) || `; known are ${[...paths.keys()].join(', ')}`}`,
        lacks: { point: wireProtocols, name },
      })),
  );
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
  /(?:\/v1\/messages(?:\/count_tokens)?|\/(?:chat\/completions|completions|responses|messages|embeddings|rerank|moderations|audio\/(?:speech|transcriptions|translations)|models(?:\/[^/]+:\w+)?|images\/(?:generations|edits)|videos\/generations|contents\/generations\/tasks))$/;

/** `called`: the path that the protocol adds. */
function endpointInUrl(path: string[], url: string, called: string | undefined): Fault[] {
  const isCalled = called !== undefined && called !== '' && pathOf(url).endsWith(called);
  const ending = isCalled ? called : endpointPattern.exec(pathOf(url))?.[0];
  if (ending === undefined) return [];
  const base = url.replace(ending, '');
  const message = `ends in "${ending}", which the gateway adds by itself: write ${base}`;
  return [{ path, message }];
}

/** Images and videos are sent on a way of their own, which knows none of these settings. */
function mediaElsewhere(provider: string, section: ProviderConfig): Fault[] {
  const { proxy = '', tls, addresses, keyProxies, speaks } = section;
  const hasNetwork =
    proxy !== '' || tls !== undefined || addresses !== undefined || keyProxies.some((own = '') => own !== '');
  return Object.entries(speaks)
    .filter(
      ([protocol, url]) =>
        /-(?:images|videos)$/.test(protocol) && (hasNetwork || url.includes('?') || url.includes(modelMark)),
    )
    .map(([protocol]) => ({
      path: [provider, 'speaks', protocol],
      message:
        'images and videos are sent without proxy, tls, addresses, queries and {model}: make them a provider of their own that has none of these',
    }));
}

function doubledVersion(provider: string, { speaks }: ProviderConfig, paths: SpokenPaths): string[] {
  return Object.entries(speaks).flatMap(([protocol, url]) => {
    const [version] = /^\/v\d+/.exec(paths?.get(protocol) ?? '') ?? [];
    if (version === undefined || !pathOf(url).endsWith(version)) return [];
    const address = url.replace(/\?.*$/, '') + paths!.get(protocol)!;
    return `providers.${provider}.speaks.${protocol}: calls go to ${address}; if "${version}" stands there once too often, write ${url.replace(new RegExp(`${version}(?=$|\\?)`), '')}`;
  });
}

function unspoken(provider: string, section: ProviderConfig, paths: SpokenPaths): string[] {
  const { speaks, ...settings } = byProtocol(section);
  return Object.entries(settings).flatMap(([setting, names]) =>
    names
      .filter((name) => paths?.has(name) && !speaks!.includes(name))
      .map((name) => `providers.${provider}.${setting}.${name} has no effect: "${name}" is not under speaks`),
  );
}

function pathOf(url: string): string {
  return parseLocal(url)?.path ?? new URL(url).pathname.replace(/\/+$/, '');
}

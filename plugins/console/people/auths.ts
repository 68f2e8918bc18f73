/** Instances of the sign-in, made when they are first used: by origin, and of their own for each provider. */
import { setImmediate } from 'node:timers/promises';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { OidcProvider } from '../config.ts';
import type { Auth } from './auth.ts';
import type { AuthParts, FoundProvider } from './auth-parts.ts';
import { arrival, leadFetch } from './providers/arrival.ts';
import { type Discovered, discover, ProviderFault } from './providers/discovery.ts';
import { hashSecret } from './secrets.ts';

/** Without a configured origin there is one for each name that the gateway is called by. */
const mostOrigins = 8;

/** Packages that auth.ts imports. */
const packages = [
  '@better-auth/core/db/adapter',
  'better-auth/adapters/drizzle',
  'better-auth/crypto',
  'better-auth/api',
  'better-auth/plugins',
  '@better-auth/passkey',
];
let loaded: ReturnType<typeof loadAuth> | undefined;

/** Half of the modules of this program, which a start need not wait for. One package in a turn, so that streams go on in between. */
async function loadAuth() {
  leadFetch();
  for (const name of packages) {
    await import(name);
    await setImmediate();
  }
  return import('./auth.ts');
}

/** One instance for each origin that is used, without the oldest ones. */
export function keepAuths(parts: AuthParts, found?: FoundProvider) {
  const auths = new Map<string, Auth>();
  return {
    async at(origin: string): Promise<Auth> {
      loaded ??= loadAuth();
      const { createAuth } = await loaded;
      let auth = auths.get(origin);
      if (auth === undefined) {
        if (auths.size >= mostOrigins) auths.delete(auths.keys().next().value!);
        auth = createAuth(parts, origin, found);
        auths.set(origin, auth);
      }
      return auth;
    },
  };
}

/** So often at most a provider that could not be used is looked for. */
const lookAgainMs = 3_000;
/** Those of accounts: so many are kept at most. */
const mostKept = 50;

interface Found {
  readonly discovered: Discovered;
  readonly auths: ReturnType<typeof keepAuths>;
  readonly fetch: Host['fetch'];
}
interface Kept {
  /** Hash of all that the provider is set to: another one is found once more. */
  readonly revision: string;
  readonly found: Promise<Found>;
}

/** One sign-in for each provider, made when it has said what it is. `fetchFor`: the way to it. */
export function providerAuths(parts: AuthParts, fetchFor: (provider: OidcProvider) => Host['fetch']) {
  const kept = new Map<string, Kept>();
  const notBefore = new Map<string, number>();
  const look = async (provider: OidcProvider): Promise<Found> => {
    const fetch = fetchFor(provider);
    const discovered = await discover(fetch, provider.issuer);
    return { discovered, auths: keepAuths({ ...parts, fetch }, { provider, discovered }), fetch };
  };
  const failed = (id: string) => (error: unknown) => {
    kept.delete(id);
    if (notBefore.size >= mostKept) notBefore.clear();
    notBefore.set(id, parts.clock.monotonic() + lookAgainMs);
    if (!(error instanceof ProviderFault)) throw error;
    parts.log.warn({ provider: id, reason: error.message }, 'people cannot sign in by a provider');
    throw unreachable();
  };
  const find = (provider: OidcProvider): Promise<Found> => {
    const { id } = provider;
    const revision = hashSecret(JSON.stringify(provider));
    const known = kept.get(id);
    if (known?.revision === revision) return known.found;
    if (parts.clock.monotonic() < (notBefore.get(id) ?? 0)) return Promise.reject(unreachable());
    const found = look(provider).catch(failed(id));
    kept.delete(id);
    if (kept.size >= mostKept) kept.delete(kept.keys().next().value!);
    kept.set(id, { revision, found });
    return found;
  };
  return {
    discovered: async (provider: OidcProvider) => (await find(provider)).discovered,
    async at(origin: string, provider: OidcProvider): Promise<Auth> {
      const { auths, fetch } = await find(provider);
      // better-auth reads what the provider says of itself when an instance is made.
      const auth = await arrival.run({ fetch }, () => auths.at(origin));
      return {
        async handler(request) {
          const response = await arrival.run({ fetch }, () => auth.handler(request));
          // better-auth reads the discovery document again, and leaves the provider out where it cannot.
          const isMissing =
            response.status === 404 || response.headers.get('location')?.includes('oauth_provider_not_found');
          if (isMissing) kept.delete(provider.id);
          return response;
        },
      };
    },
  };
}

const unreachable = () =>
  new GatewayError('overloaded', 'The provider cannot be reached. Try again, or sign in another way.', {
    code: 'provider_unreachable',
  });

/** Instances of the sign-in, made when they are first used: by origin, and of their own for each provider. */
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { OidcProvider } from '../config.ts';
import type { Auth } from './auth.ts';
import type { AuthParts, FoundProvider } from './auth-parts.ts';
import { arrival, leadFetch } from './providers/arrival.ts';
import { type Discovered, discover, ProviderFault } from './providers/discovery.ts';

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

type Found = { readonly discovered: Discovered; readonly auths: ReturnType<typeof keepAuths> };

/** One sign-in for each provider, made when it has said what it is. */
export function providerAuths(parts: AuthParts) {
  const kept = new Map<string, Promise<Found>>();
  const notBefore = new Map<string, number>();
  const look = async (provider: OidcProvider): Promise<Found> => {
    const discovered = await discover(parts.fetch, provider.issuer);
    return { discovered, auths: keepAuths(parts, { provider, discovered }) };
  };
  const find = (provider: OidcProvider): Promise<Found> => {
    const { id } = provider;
    const known = kept.get(id);
    if (known !== undefined) return known;
    if (parts.clock.monotonic() < (notBefore.get(id) ?? 0)) return Promise.reject(unreachable());
    const found = look(provider).catch((error: unknown) => {
      kept.delete(id);
      notBefore.set(id, parts.clock.monotonic() + lookAgainMs);
      if (!(error instanceof ProviderFault)) throw error;
      parts.log.warn({ provider: id, reason: error.message }, 'people cannot sign in by a provider');
      throw unreachable();
    });
    kept.set(id, found);
    return found;
  };
  return {
    discovered: async (provider: OidcProvider) => (await find(provider)).discovered,
    async at(origin: string, provider: OidcProvider): Promise<Auth> {
      const { auths } = await find(provider);
      // better-auth reads what the provider says of itself when an instance is made.
      const auth = await arrival.run({ fetch: parts.fetch }, () => auths.at(origin));
      return {
        async handler(request) {
          const response = await arrival.run({ fetch: parts.fetch }, () => auth.handler(request));
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

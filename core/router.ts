/** Method and path to the endpoint's compiled chain, on find-my-way. */
import findMyWay, { type HTTPMethod } from 'find-my-way';
import type { Run } from './chain.ts';
import type { Endpoint } from './contract.ts';

export interface Route {
  readonly endpoint: Endpoint;
  readonly run: Run;
}

export interface Match {
  readonly route: Route;
  readonly params: Record<string, string | undefined>;
}

export interface Router {
  /** undefined: no such path; a list: the methods that the path knows. */
  find(method: string, path: string): Match | readonly string[] | undefined;
}

const methods: readonly HTTPMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const noHandler = () => {};

/** Trailing and doubled slashes are forgiven; case is not. */
export function createRouter(routes: readonly Route[]): Router {
  const ways = findMyWay({ ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 512 });
  for (const route of routes) ways.on(route.endpoint.method, route.endpoint.path, noHandler, route);
  return {
    find(method, path) {
      const found = ways.find(method as HTTPMethod, path);
      if (found !== null) return { route: found.store as Route, params: found.params };
      const known = methods.filter((other) => ways.find(other, path) !== null);
      return known.length === 0 ? undefined : known;
    },
  };
}

/** Some clients repeat the version that their base address already ends with. */
export function withoutDoubledVersion(path: string): string {
  return path.startsWith('/v1/v1') ? path.slice(3) : path;
}

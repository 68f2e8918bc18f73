/** Method and path to the endpoint's compiled chain, on find-my-way. */
import findMyWay, { type HTTPMethod } from 'find-my-way';
import type { Run } from './chain.ts';
import type { Endpoint } from './contract.ts';
import { GatewayError } from './errors.ts';

export interface Route {
  readonly endpoint: Endpoint;
  readonly run: Run;
}

export interface Match {
  readonly route: Route;
  readonly params: Record<string, string | undefined>;
}

export interface Router {
  /** undefined: no such path; a list: the methods that the path knows. HEAD is known wherever GET is. */
  find(method: string, path: string): Match | readonly string[] | undefined;
  /** An endpoint at this path, whatever its method, or else at the nearest path above it: whose words an error is told in. */
  nearest(path: string): Endpoint | undefined;
}

const methods: readonly HTTPMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const noHandler = () => {};
/** No endpoint's path has as many; whoever sends thousands of them does not have each looked up. */
const mostParts = 12;

/** Trailing and doubled slashes are forgiven; case is not. */
export function createRouter(routes: readonly Route[]): Router {
  const ways = findMyWay({ ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 512 });
  for (const route of routes) ways.on(route.endpoint.method, route.endpoint.path, noHandler, route);
  const at = (method: string, path: string) =>
    ways.find(method as HTTPMethod, path) ?? (method === 'HEAD' ? ways.find('GET', path) : null);
  return {
    find(method, path) {
      const found = at(method, path);
      if (found !== null) return { route: found.store as Route, params: found.params };
      const known = methods.filter((other) => at(other, path) !== null);
      return known.length === 0 ? undefined : known;
    },
    nearest(path) {
      for (const parts = path.split('/', mostParts); parts.length > 1; parts.pop()) {
        const place = parts.join('/');
        const found = methods.flatMap((method) => ways.find(method, place) ?? [])[0];
        if (found !== undefined) return (found.store as Route).endpoint;
      }
      return undefined;
    },
  };
}

const version = /^\/v1(?:beta|alpha)?$/;

/** Clients whose base address ends with a version (`/v1`, `/v1beta`) may put one of their own behind it: theirs counts. */
export function withoutDoubledVersion(path: string): string {
  const second = path.indexOf('/', 1);
  return second > 0 && path.startsWith('/v1', second) && version.test(path.slice(0, second))
    ? path.slice(second)
    : path;
}

/** Throws not_found with the address that was meant, if that is clear, or method_not_allowed with those that are. */
export function matched(router: Router, method: string, path: string): Match {
  const found = router.find(method, path);
  if (found === undefined) {
    // A base address without its version is the commonest mistake of all.
    const meant = router.find(method, `/v1${path}`) === undefined ? '' : ` Did you mean /v1${path}?`;
    throw new GatewayError('not_found', `There is nothing at ${method} ${path}.${meant}`, { code: 'unknown_url' });
  }
  if ('route' in found) return found;
  throw new GatewayError('method_not_allowed', `${path} does not answer ${method}.`, {
    headers: { allow: found.join(', ') },
  });
}

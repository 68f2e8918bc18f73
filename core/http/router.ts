/** The router: method and path to an endpoint's compiled chain, on find-my-way. */
import findMyWay, { type HTTPMethod } from 'find-my-way';
import type { Endpoint } from '../contract/contract.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Run } from './chain.ts';

export interface Route {
  readonly endpoint: Endpoint;
  readonly run: Run;
}

export interface Match {
  readonly route: Route;
  readonly params: Record<string, string | undefined>;
}

export interface Router {
  /** The path without a doubled prefix: of two `pathPrefixes` in front, the second one counts. */
  normalize(path: string): string;
  /** undefined: no such path; a list: the methods of the path. HEAD is one of them wherever GET is. */
  find(method: string, path: string): Match | readonly string[] | undefined;
  /** The same path behind each `pathPrefixes` entry, in their order; undefined: none has an endpoint. */
  suggest(method: string, path: string): string | undefined;
  /** An endpoint at this path with any method, else at the nearest path above it: it renders errors of unrouted requests. */
  nearest(path: string): Endpoint | undefined;
}

const methods: readonly HTTPMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const noHandler = () => {};
/** No endpoint's path has more segments; bounds the look-ups for a path with thousands of them. */
const maxSegments = 12;

/**
 * Trailing and doubled slashes are ignored; case is significant. `pathPrefixes`: those of the plugins, which clients double
 * (a base address that ends with one already) or leave out.
 */
export function createRouter(routes: readonly Route[], pathPrefixes: readonly string[] = []): Router {
  const ways = findMyWay({ ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 512 });
  for (const [, shared] of Map.groupBy(routes, ({ endpoint }) => `${endpoint.method} ${endpoint.path}`)) {
    const { method, path } = shared[0]!.endpoint;
    ways.on(method, path, noHandler, shared.toSorted(choosyFirst));
  }
  const at = (method: string, path: string) => {
    const found = ways.find(method as HTTPMethod, path) ?? (method === 'HEAD' ? ways.find('GET', path) : null);
    return found === null ? undefined : matchAmong(found.store as readonly Route[], found.params);
  };
  const exact = exactMatches(routes);
  const find: Router['find'] = (method, path) => {
    const known = exact.get(method)?.get(path);
    if (known !== undefined) return known;
    const found = at(method, path);
    if (found !== undefined) return found;
    const allowed = methods.filter((other) => at(other, path) !== undefined);
    return allowed.length === 0 ? undefined : allowed;
  };
  return {
    find,
    normalize(path) {
      if (exact.get('POST')?.has(path) === true) return path;
      for (const prefix of pathPrefixes) {
        if (!beginsWith(path, prefix, 0)) continue;
        return pathPrefixes.some((second) => beginsWith(path, second, prefix.length))
          ? path.slice(prefix.length)
          : path;
      }
      return path;
    },
    suggest(method, path) {
      return pathPrefixes.map((prefix) => prefix + path).find((candidate) => find(method, candidate) !== undefined);
    },
    nearest(path) {
      for (const segments = path.split('/', maxSegments); segments.length > 1; segments.pop()) {
        const prefix = segments.join('/');
        const found = methods.flatMap((method) => ways.find(method, prefix) ?? [])[0];
        if (found !== undefined) return (found.store as readonly Route[]).at(-1)?.endpoint;
      }
      return undefined;
    },
  };
}

const choosyFirst = (left: Route, right: Route) =>
  Number(left.endpoint.takes === undefined) - Number(right.endpoint.takes === undefined);

/** Routes at one path that take only some requests come first. */
function matchAmong(shared: readonly Route[], params: Match['params']): Match | undefined {
  const route = shared.find(({ endpoint }) => endpoint.takes?.(params) ?? true);
  return route === undefined ? undefined : { route, params };
}

const noParams: Match['params'] = Object.freeze(Object.create(null));

/** Endpoints without path parameters, by method and path: one look-up finds the endpoint of most requests. */
function exactMatches(routes: readonly Route[]): ReadonlyMap<string, ReadonlyMap<string, Match>> {
  const exact = new Map<string, Map<string, Match>>(methods.map((method) => [method, new Map()]));
  for (const route of routes) {
    const { method, path, takes } = route.endpoint;
    if (takes === undefined && !/[:*()?]/.test(path)) exact.get(method)?.set(path, { route, params: noParams });
  }
  return exact;
}

/** Whether whole segments of the path at `index` are the prefix. */
function beginsWith(path: string, prefix: string, index: number): boolean {
  const end = index + prefix.length;
  return path.startsWith(prefix, index) && (path.length === end || path[end] === '/');
}

/** Throws not_found, with the likely address if there is one, or method_not_allowed with the methods of the path. */
export function matchRoute(router: Router, method: string, path: string): Match {
  // No id has U+0000, and no database takes it.
  const found = path.includes('%00') ? undefined : router.find(method, path);
  if (found === undefined) {
    const likely = router.suggest(method, path);
    const hint = likely === undefined ? '' : ` Did you mean ${likely}?`;
    throw new GatewayError('not_found', `There is nothing at ${method} ${path}.${hint}`, { code: 'unknown_url' });
  }
  if ('route' in found) return found;
  throw new GatewayError('method_not_allowed', `${path} does not answer ${method}.`, {
    headers: { allow: found.join(', ') },
  });
}

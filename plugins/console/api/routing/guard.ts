/** Middleware before every route: identifies the actor, checks access, and refuses requests of foreign pages. */

import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { toGatewayError } from '../../../../core/contract/upstream-failures.ts';
import { withNulField } from '../../../../core/json/nul-field.ts';
import { refuseForeign } from '../../origin.ts';
import { nameAccount } from '../../people/people-service.ts';
import { type Access, mayAsk, rightOf } from './access.ts';
import { type ConsoleServices, type RequestContext, requireRight, type Setting } from './router.ts';

/** Deny by default: a route that the table does not name is a 404 for all roles. */
export function guard(services: ConsoleServices, access: Readonly<Record<string, Access>>): MiddlewareHandler<Setting> {
  return async function guardRoute(c, next) {
    c.header('cache-control', 'no-store');
    const needed = accessOf(c, access);
    if (needed === undefined) throw new GatewayError('not_found', 'There is nothing here.', { code: 'unknown_url' });
    const isProgram = needed === 'program';
    const actor = isProgram ? undefined : await services.people.identify(headersOf(c));
    limitRate(services, actor?.id ?? c.env.address);
    // Browsers never attach a bearer token by themselves, so forged requests carry none.
    if (!isProgram && actor?.kind !== 'token')
      refuseForeign({ method: c.req.method, header: (name) => c.req.header(name) }, c.env.origin);
    if (!mayAsk(needed, actor)) {
      if (actor === undefined) throw new GatewayError('unauthenticated', 'Sign in first.');
      throw new GatewayError('forbidden', 'Your role does not include this.');
    }
    c.set('actor', actor);
    const right = rightOf(needed);
    if (right !== undefined) await requireRight(services, c, right);
    await next();
  };
}

/** Links, which have no headers of their own, name their account in the address. */
function headersOf(c: RequestContext): Headers {
  const named = c.req.query('account');
  if (named === undefined) return c.req.raw.headers;
  const headers = new Headers(c.req.raw.headers);
  nameAccount(headers, named);
  return headers;
}

const mostPerMinute = 900;

/** More than a person with many open pages needs; each request may cost a database query. */
function limitRate({ throttle }: ConsoleServices, who: string): void {
  const retryAfterMs = throttle.take(`api:${who}`, mostPerMinute, 60_000);
  if (retryAfterMs > 0) throw new GatewayError('rate_limited', 'Too many requests. Try again later.', { retryAfterMs });
}

function accessOf(c: RequestContext, access: Readonly<Record<string, Access>>) {
  for (const { method, path } of matchedRoutes(c)) {
    const needed = access[`${method} ${path.replace(/^\/console\/api(?=\/)/, '')}`];
    if (needed !== undefined) return needed;
  }
  return undefined;
}

/** The one shape of errors. */
export function renderError(thrown: unknown, c: RequestContext): Response {
  const error = withNulField(toGatewayError(unwrapped(thrown)), c.env.exchange.request);
  const { kind, message, field, code, retryAfterMs } = error;
  if (retryAfterMs !== undefined) c.header('retry-after', String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  c.header('cache-control', 'no-store');
  const body = { code: code ?? kind, message, ...(field === undefined ? {} : { field }) };
  return c.json({ error: body }, error.status as ContentfulStatusCode);
}

/** Hono's own refusals (a body that is no JSON) by their status. */
function unwrapped(thrown: unknown): unknown {
  const status = (thrown as { status?: unknown }).status;
  if (thrown instanceof GatewayError || status !== 400) return thrown;
  return new GatewayError('invalid_request', 'The body is not valid JSON.', { field: 'body', cause: thrown });
}

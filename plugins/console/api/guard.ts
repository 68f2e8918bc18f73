/** What stands before every route: who asks, whether they may, and that a page of ours has sent it. */
import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { GatewayError, toGatewayError } from '../../../core/errors.ts';
import { refuseForeign } from '../origin.ts';
import { access, mayAsk } from './access.ts';
import type { Ask, Console, Setting } from './router.ts';

/** Deny by default: a route that the table does not name is a 404 for everybody. */
export function guard(hall: Console): MiddlewareHandler<Setting> {
  return async function guardRoute(ask, next) {
    ask.header('cache-control', 'no-store');
    const needed = accessOf(ask);
    if (needed === undefined) throw new GatewayError('not_found', 'There is nothing here.', { code: 'unknown_url' });
    const actor = await hall.people.identify(ask.req.raw.headers);
    refuseHaste(hall, actor?.id ?? ask.env.address);
    // No browser sends a token by itself.
    if (actor?.kind !== 'token')
      refuseForeign({ method: ask.req.method, header: (name) => ask.req.header(name) }, ask.env.origin);
    if (!mayAsk(needed, actor)) {
      if (actor === undefined) throw new GatewayError('unauthenticated', 'Sign in first.');
      throw new GatewayError('forbidden', 'Your role does not include this.');
    }
    ask.set('actor', actor);
    await next();
  };
}

const mostPerMinute = 900;

/** More than a person with many open pages needs; each question may be one to the database. */
function refuseHaste({ throttle }: Console, who: string): void {
  const retryAfterMs = throttle.take(`api:${who}`, mostPerMinute, 60_000);
  if (retryAfterMs > 0) throw new GatewayError('rate_limited', 'Too many requests. Try again later.', { retryAfterMs });
}

function accessOf(ask: Ask) {
  for (const { method, path } of matchedRoutes(ask)) {
    const needed = access[`${method} ${path.replace(/^\/console\/api(?=\/)/, '')}`];
    if (needed !== undefined) return needed;
  }
  return undefined;
}

/** The one shape of errors. */
export function renderError(thrown: unknown, ask: Ask): Response {
  const error = toGatewayError(unwrapped(thrown));
  const { kind, message, field, code, retryAfterMs } = error;
  if (retryAfterMs !== undefined) ask.header('retry-after', String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  ask.header('cache-control', 'no-store');
  const told = { code: code ?? kind, message, ...(field === undefined ? {} : { field }) };
  return ask.json({ error: told }, error.status as ContentfulStatusCode);
}

/** Hono's own refusals (a body that is no JSON) by their status. */
function unwrapped(thrown: unknown): unknown {
  const status = (thrown as { status?: unknown }).status;
  if (thrown instanceof GatewayError || status !== 400) return thrown;
  return new GatewayError('invalid_request', 'The body is not valid JSON.', { field: 'body', cause: thrown });
}

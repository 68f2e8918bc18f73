/** The routes that plugins add by the extension point `admin pages`, and who may use them. */
import { z } from '@hono/zod-openapi';
import { table } from '../../../../core/contract/table.ts';
import type { AdminPage, AdminRequest, AdminRoute } from '../../../common/domain/admin/admin-pages.ts';
import { routePath } from '../../page-problems.ts';
import { type Access, access } from '../routing/access.ts';
import { actorOf, type ConsoleServices } from '../routing/router.ts';
import { type InputOf, Routes, route } from '../routing/routes.ts';
import { answers, takes } from '../schemas.ts';

/** The console's table with the rows of these pages. */
export function accessWith(pages: readonly AdminPage[]): Readonly<Record<string, Access>> {
  const added = pages.flatMap((page) =>
    (page.routes ?? []).map((one) => [`${one.method} ${routePath(page, one)}`, one.access] as const),
  );
  return table({ ...access, ...Object.fromEntries(added) });
}

/** The routes of all added pages. */
export function pluginPageRoutes(services: ConsoleServices) {
  const routes = new Routes(services);
  for (const page of services.adminPages()) for (const one of page.routes ?? []) add(routes, page, one);
  return routes;
}

function add(routes: Routes, page: AdminPage, one: AdminRoute): void {
  const path = routePath(page, one);
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
  const declared = route(
    one.method.toLowerCase() as 'get',
    path.replaceAll(/:(\w+)/g, '{$1}'),
    one.summary,
    answers((one.answer ?? z.unknown()) as z.ZodType),
    {
      params: z.object(Object.fromEntries(names.map((name) => [name, z.string().min(1).max(200)]))),
      ...(one.query === undefined ? {} : { query: one.query as unknown as z.ZodObject }),
      ...(one.body === undefined ? {} : { body: takes(one.body as unknown as z.ZodType) }),
    },
  );
  if (one.method === 'GET') {
    routes.read(declared, async (input) => (await one.handle(requestOf(one, input))) ?? { ok: true });
    return;
  }
  routes.action(declared, (input) => {
    const request = requestOf(one, input);
    const { reason } = Object(request.body) as { reason?: unknown };
    return {
      action: `${page.name}.${one.method.toLowerCase()}`,
      subject: one.subject?.(request) ?? Object.values(request.params).join(' '),
      reason: typeof reason === 'string' ? reason : undefined,
      run: async () => one.handle(request),
    };
  });
}

type Declared = ReturnType<typeof route<'get', string, ReturnType<typeof answers>>>;

function requestOf(one: AdminRoute, input: InputOf<Declared>): AdminRequest {
  const { c, param, query, json } = input as unknown as Record<'param' | 'query' | 'json', unknown> & {
    c: Parameters<typeof actorOf>[0];
  };
  const { label, role } = actorOf(c);
  return {
    params: (param ?? {}) as AdminRequest['params'],
    query: one.query === undefined ? undefined : query,
    body: one.body === undefined ? undefined : json,
    actor: { label, role: role as 'auditor' | 'operator' },
  };
}

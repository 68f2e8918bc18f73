/** The routes that plugins add with their pages, and who may use them. */
import { z } from '@hono/zod-openapi';
import { table } from '../../../../core/contract/table.ts';
import type { AdminRequest, ClientPageRequest } from '../../../common/domain/admin/admin-pages.ts';
import { type AddedPage, routePath } from '../../page-problems.ts';
import { type Access, access } from '../routing/access.ts';
import { actorOf, type ConsoleServices, ownAccount, type RequestContext } from '../routing/router.ts';
import { type InputOf, Routes, route } from '../routing/routes.ts';
import { answers, takes } from '../schemas.ts';

type AddedRoute = NonNullable<AddedPage['page']['routes']>[number];
type AnyRequest = AdminRequest & ClientPageRequest;

/** Clients' pages are for the chosen account. */
const accessOf = (one: AddedRoute): Access => ('access' in one ? one.access : 'own:pages');

/** The console's table with the rows of these pages. */
export function accessWith(pages: readonly AddedPage[]): Readonly<Record<string, Access>> {
  const added = pages.flatMap((one) =>
    routesOf(one).map((each) => [`${each.method} ${routePath(one, each)}`, accessOf(each)] as const),
  );
  return table({ ...access, ...Object.fromEntries(added) });
}

/** The routes of all added pages. */
export function pluginPageRoutes(services: ConsoleServices) {
  const routes = new Routes(services);
  for (const page of services.addedPages()) for (const one of routesOf(page)) add(services, routes, page, one);
  return routes;
}

const routesOf = ({ page }: AddedPage): readonly AddedRoute[] => page.routes ?? [];

function add(services: ConsoleServices, routes: Routes, added: AddedPage, one: AddedRoute): void {
  const path = routePath(added, one);
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
  const account = (c: RequestContext) => (added.place === 'pages' ? ownAccount(services, c) : undefined);
  if (one.method === 'GET') {
    routes.read(declared, async (input) => {
      const request = requestOf(one, input, await account(input.c));
      return (await one.handle(request)) ?? { ok: true };
    });
    return;
  }
  routes.action(declared, async (input) => {
    const request = requestOf(one, input, await account(input.c));
    const { reason } = Object(request.body) as { reason?: unknown };
    return {
      action: `${added.page.name}.${one.method.toLowerCase()}`,
      subject: one.subject?.(request) ?? Object.values(request.params).join(' '),
      reason: typeof reason === 'string' ? reason : undefined,
      run: async () => one.handle(request),
    };
  });
}

type Declared = ReturnType<typeof route<'get', string, ReturnType<typeof answers>>>;

/** `accountId`: of a client. */
function requestOf(one: AddedRoute, input: InputOf<Declared>, accountId: string | undefined): AnyRequest {
  const { c, param, query, json } = input as unknown as Record<'param' | 'query' | 'json', unknown> & {
    c: RequestContext;
  };
  const { label, role, id } = actorOf(c);
  return {
    params: (param ?? {}) as AnyRequest['params'],
    query: one.query === undefined ? undefined : query,
    body: one.body === undefined ? undefined : json,
    ...(accountId === undefined ? { actor: { label, role } } : { accountId, actor: { label, id } }),
  } as AnyRequest;
}

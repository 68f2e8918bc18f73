/** How a route is declared in one line, and the handlers that most routes share: an answer, a list, an audited change. */

import {
  createRoute,
  OpenAPIHono,
  type RouteConfig,
  type RouteConfigToTypedResponse,
  type RouteHandler,
  type z,
} from '@hono/zod-openapi';
import type { Context, Input } from 'hono';
import type { ToSchema } from 'hono/types';
import type { Page, PageRequest } from '../../../common/domain/admin/pages.ts';
import type { AuditChange } from '../../people.ts';
import { listed, pageRequest } from '../schemas.ts';
import { audited, type ConsoleServices, type RequestContext, refuseInvalid, type Setting } from './router.ts';

export function route<
  Method extends 'get' | 'post' | 'patch' | 'delete',
  Path extends string,
  Responses extends RouteConfig['responses'],
  Request extends NonNullable<RouteConfig['request']> = Record<never, never>,
>(method: Method, path: Path, summary: string, responses: Responses, request?: Request) {
  const parts = request === undefined ? { responses } : { request, responses };
  return createRoute({ method, path, summary, ...parts } as {
    method: Method;
    path: Path;
    summary: string;
    request: Request;
    responses: Responses;
  });
}

type ContextOf<Route extends RouteConfig> = Parameters<RouteHandler<Route, Setting>>[0];
type ValidOf<Route extends RouteConfig> =
  ContextOf<Route> extends Context<Setting, string, infer Given extends Input> ? Given['out'] : never;
/** Arguments of a handler: the parts of the request as their schemas parsed them, and Hono's context. */
export type InputOf<Route extends RouteConfig> = ValidOf<Route> & { readonly c: RequestContext };

interface Answering {
  readonly responses: { readonly 200: { readonly content: { readonly 'application/json': { schema: z.ZodType } } } };
}
export type AnswerOf<Route extends Answering> = z.input<
  Route['responses'][200]['content']['application/json']['schema']
>;
type RowOf<Route extends Answering> = AnswerOf<Route> extends { rows: (infer Row)[] } ? Row : never;
type Later<Value> = Value | Promise<Value>;
/** One route as Hono's typed client knows it. */
type Described<Route extends RouteConfig> =
  ContextOf<Route> extends Context<Setting, infer Path extends string, infer Given extends Input>
    ? ToSchema<Route['method'], Path, Given, RouteConfigToTypedResponse<Route>>
    : never;

function inputOf<Route extends RouteConfig>(c: RequestContext): InputOf<Route> {
  const valid = (part: string): unknown => c.req.valid(part as never);
  const input = {
    c,
    get param() {
      return valid('param');
    },
    get query() {
      return valid('query');
    },
    get json() {
      return valid('json');
    },
    get form() {
      return valid('form');
    },
    get header() {
      return valid('header');
    },
  };
  return input as unknown as InputOf<Route>;
}

export interface Change<Answer> {
  /** Name, subject and reason of the row in the audit log. */
  readonly action: string;
  readonly subject: string;
  readonly reason?: string | undefined;
  /** What it sets, with what was there before. */
  readonly changes?: readonly AuditChange[] | undefined;
  /** The account that it is made in, where it is not the one that the actor has chosen. */
  readonly accountId?: string | undefined;
  /** Makes the change and returns the answer; without one the answer is `{"ok": true}`. It gets the id of the row. */
  readonly run: (auditId: string) => Later<Answer> | Promise<void>;
  /** The outcome in the audit log; `done` by default. */
  readonly outcome?: (answer: Answer) => string;
}

/** The routes of one topic. `Known` is what typed clients know of them; it has no value. */
export class Routes<Known = unknown> {
  declare readonly known: Known;
  readonly app = new OpenAPIHono<Setting>(refuseInvalid);
  readonly #services: ConsoleServices;

  constructor(services: ConsoleServices) {
    this.#services = services;
  }

  /** Answers what `read` returns. */
  read<Route extends RouteConfig & Answering>(
    route: Route,
    read: (input: InputOf<Route>) => Later<AnswerOf<Route>>,
  ): Routes<Known & Described<Route>> {
    return this.#add(route, async (c) => c.json((await read(inputOf<Route>(c))) as object, 200));
  }

  /** Answers one page of rows: reads `limit` and `after`, and writes each row as JSON; what else the page has, as it is. */
  list<Route extends RouteConfig & Answering, Row>(
    route: Route,
    toJson: (row: Row) => RowOf<Route>,
    list: (input: InputOf<Route>, page: PageRequest) => Promise<Page<Row>>,
  ): Routes<Known & Described<Route>> {
    return this.#add(route, async (c) => {
      const query = c.req.valid('query' as never) as Parameters<typeof pageRequest>[0];
      return c.json(listed(await list(inputOf<Route>(c), pageRequest(query)), toJson), 200);
    });
  }

  /** Makes a change with a row in the audit log before and after it. */
  action<Route extends RouteConfig & Answering>(
    route: Route,
    plan: (input: InputOf<Route>) => Later<Change<AnswerOf<Route>>>,
  ): Routes<Known & Described<Route>> {
    const isOfAccount = route.path.startsWith('/admin/accounts/{id}/');
    return this.#add(route, async (c) => {
      const { run, outcome, ...planned } = await plan(inputOf<Route>(c));
      // What operators do about an account stands in its own log too.
      const accountId = planned.accountId ?? (isOfAccount ? c.req.param('id') : undefined);
      const change = { ...planned, accountId };
      const work = async (auditId: string) => ((await run(auditId)) ?? { ok: true }) as AnswerOf<Route>;
      return c.json((await audited(this.#services, c, change, work, outcome)) as object, 200);
    });
  }

  /** Answers a file. */
  file<Route extends RouteConfig>(
    route: Route,
    answer: (input: InputOf<Route>) => Later<Response>,
  ): Routes<Known & Described<Route>> {
    return this.#add(route, async (c) => answer(inputOf<Route>(c)));
  }

  #add(route: RouteConfig, handler: (c: RequestContext) => Promise<Response>): never {
    this.app.openapi(route, handler as never);
    return this as never;
  }
}

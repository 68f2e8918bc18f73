/** The console's contract: the extension points by which plugins add a page and its API routes to the console, for operators or for clients. */

import { type ConfigSchema, defineExtensionPoint } from '../../../../core/contract/contract.ts';

/** `read`: auditors and operators. `act`: operators; tokens have an operator's rights. */
export type AdminAccess = 'read' | 'act';

export interface AdminRequest<Query = unknown, Body = unknown> {
  /** Parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** As the route's schemas parsed them; undefined without a schema. */
  readonly query: Query;
  readonly body: Body;
  readonly actor: { readonly label: string; readonly role: 'auditor' | 'operator' };
}

/** A request of a client's page. */
export interface ClientPageRequest<Query = unknown, Body = unknown> extends Omit<AdminRequest<Query, Body>, 'actor'> {
  /** The account that the person has chosen: what the route reads and changes is its own. */
  readonly accountId: string;
  /** `id`: of the person, for what is their own within the account. */
  readonly actor: { readonly label: string; readonly id: string };
}

/** A change (any method but GET) gets a row in the audit log, with `reason` of its body. */
interface PageRoute<Query, Body, Request> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below the address of the page's API: empty, or such as `/rows/:id`. */
  readonly path: string;
  /** One line of the API's description. */
  readonly summary: string;
  /** Input that a schema rejects is answered with 400 and names the field. Query values are text. */
  readonly query?: ConfigSchema<Query>;
  readonly body?: ConfigSchema<Body>;
  /** Describes the answer; it is not checked. */
  readonly answer?: ConfigSchema<unknown>;
  /** The subject of a change in the audit log; default: the values of the path. */
  subject?(request: Request): string;
  /** Returns the answer, which is sent as JSON; undefined: `{"ok": true}`. Throws a GatewayError to refuse. */
  handle(request: Request): unknown;
}

/** A route of an operators' page. */
export interface AdminRoute<Query = unknown, Body = unknown> extends PageRoute<Query, Body, AdminRequest<Query, Body>> {
  readonly access: AdminAccess;
}

/** A route of a clients' page, for owners and admins of an account, and for that account alone. */
export type ClientPageRoute<Query = unknown, Body = unknown> = PageRoute<Query, Body, ClientPageRequest<Query, Body>>;

/** Lets the type checker infer the types of query and body from their schemas. */
export const adminRoute = <Query, Body>(route: AdminRoute<Query, Body>): AdminRoute => route;

/** A page for operators, with its routes. */
/** The same for a route of a clients' page. */
export const clientPageRoute = <Query, Body>(route: ClientPageRoute<Query, Body>): ClientPageRoute => route;

/** Members that pages for operators and for clients share. */
interface ConsolePage {
  /** Small letters, digits and dashes. */
  readonly name: string;
  /** By language; English is shown where the reader's is missing. */
  readonly title: { readonly en: string; readonly [language: string]: string };
  /** One sentence below the title. */
  readonly intro?: { readonly en: string; readonly [language: string]: string };
  /** A built ES module in one file, for browsers: it exports `mount(element, console)`, which may return a function that ends it. */
  readonly module: URL;
}

/** A page for operators, at `/console/admin/NAME`; its routes are below `/console/api/admin/NAME`. */
export interface AdminPage extends ConsolePage {
  /** Its group in the navigation. */
  readonly group: 'traffic' | 'customers' | 'sales' | 'system';
  /** Roles that see it. */
  readonly access: AdminAccess;
  readonly routes?: readonly AdminRoute[];
}

/** A page for clients, at `/console/pages/NAME`; its routes are below `/console/api/pages/NAME`. */
export interface ClientPage extends ConsolePage {
  readonly routes?: readonly ClientPageRoute[];
}

/** Arguments of `mount` beside its element. It is called again, with another element, when language or colours change. */
export interface AdminPageConsole {
  readonly language: string;
  readonly colors: 'light' | 'dark';
  readonly role: 'client' | 'auditor' | 'operator';
  /**
   * Calls the console's API in the reader's session: `request('POST', '/admin/NAME', body)`, or `/pages/NAME` of a clients' page. A
   * refusal rejects with an Error of the answer's message, with its `status`, `code` and `field`.
   */
  request<T>(method: AdminRoute['method'], path: string, body?: object): Promise<T>;
  /** Goes to another page: `/admin/requests`. */
  open(path: string): void;
}

/** Pages for operators. Owned by `console`. */
export const adminPages = defineExtensionPoint<AdminPage>('admin pages');

/** The point at which plugins add pages for clients. */
export const clientPages = defineExtensionPoint<ClientPage>('client pages');

/** What handlers share: the gateway's services, the actor of a request, and the audit of a change. */

import type { OpenAPIHonoOptions } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Exchange, Host, Service, UpstreamRequest } from '../../../../core/contract/contract.ts';
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Clock, Log } from '../../../../core/contract/host-tools.ts';
import type { Answer } from '../../../../core/contract/message.ts';
import { toGatewayError } from '../../../../core/contract/upstream-failures.ts';
import { type AccountRight, includes } from '../../../common/domain/organizations/rights.ts';
import type { Actor } from '../../actor.ts';
import type { Brand } from '../../brand/brand.ts';
import type { Companies } from '../../company/companies.ts';
import type { ConfigHistory } from '../../config-history/history.ts';
import type { HistoryRecorder } from '../../config-history/recorder.ts';
import type { Programs } from '../../key-requests/programs.ts';
import type { Invitations } from '../../members/types.ts';
import type { AddedPage } from '../../page-problems.ts';
import type { ProviderAdmin } from '../../people/providers/provider-admin.ts';
import type { Throttle } from '../../people/throttle.ts';
import type { Audit, AuditChange, KeyRequests, Membership, People, Tokens, Views } from '../../people.ts';

export interface ConsoleServices {
  readonly find: Host['find'];
  readonly clock: Clock;
  readonly people: People;
  readonly providers: ProviderAdmin;
  readonly invitations: Invitations;
  readonly companies: Companies;
  readonly log: Pick<Log, 'error'>;
  readonly tokens: Tokens;
  readonly views: Views;
  readonly keyRequests: KeyRequests;
  readonly programs: Programs;
  readonly audit: Audit;
  readonly history: ConfigHistory;
  readonly recorder: Pick<HistoryRecorder, 'record'>;
  readonly throttle: Pick<Throttle, 'take' | 'waiting'>;
  /** Pages that plugins add; complete when every plugin is set up. */
  readonly addedPages: () => readonly AddedPage[];
  readonly settings: {
    /** Name of the gateway on the pages. */
    readonly name: string;
    readonly signUp: 'open' | 'invite' | 'closed';
    readonly mail: boolean;
    /** Logo and legal texts of the operator. */
    readonly brand: Omit<Brand, 'css' | 'answer'>;
    /** Public content. */
    readonly pages: { readonly models: boolean; readonly status: boolean };
    readonly oidc: readonly { readonly id: string; readonly name: string }[];
  };
}

export interface Setting {
  Variables: {
    /** Absent on public routes without a session. */
    actor: Actor | undefined;
    /** The account that the actor has chosen, and their role in it; looked up once. */
    membership: Promise<Membership> | undefined;
  };
  Bindings: {
    /** Where the request came from. */
    address: string;
    /** `https://gateway.example`: where the browser reaches this gateway. */
    origin: string;
    /** Puts a request to an upstream on the wire. */
    send: (request: UpstreamRequest) => Promise<Answer>;
    /** The purpose of a sent file. */
    exchange: Exchange;
  };
}
export type RequestContext = Context<Setting>;

/** Faults found by a schema are returned in the common shape of errors. */
export const refuseInvalid: OpenAPIHonoOptions<Setting> = {
  defaultHook: (result) => {
    if (result.success) return;
    const issue = result.error.issues[0]!;
    const field = issue.path.join('.') || result.target;
    throw new GatewayError('invalid_request', `${field}: ${issue.message}`, { field });
  },
};

/** The actor of a request; the guard has made sure that there is one. */
export function actorOf(c: RequestContext): Actor {
  const actor = c.get('actor');
  if (actor === undefined) throw new GatewayError('unauthenticated', 'Sign in first.');
  return actor;
}

/** A session that began at the provider of an account is for that account alone. */
export function refuseCompany(c: RequestContext): void {
  if (actorOf(c).company === undefined) return;
  throw new GatewayError('forbidden', 'You are signed in by your company, for its account alone.', {
    code: 'company_session',
  });
}

/** Names one change of one person, so that a repetition changes nothing; another person's same key is another change. */
export function referenceOf(c: RequestContext): string {
  return `console:${actorOf(c).id}:${c.req.header('idempotency-key')}`;
}

/** The account that the actor has chosen, and their role in it. */
export function membershipOf(services: ConsoleServices, c: RequestContext): Promise<Membership> {
  const known = c.get('membership') ?? services.people.membershipOf(actorOf(c));
  c.set('membership', known);
  return known;
}

/** The gateway account that the actor has chosen. */
export async function ownAccount(services: ConsoleServices, c: RequestContext): Promise<string> {
  return (await membershipOf(services, c)).accountId;
}

/** Whether the actor's role in the account includes this. */
export const has = async (services: ConsoleServices, c: RequestContext, right: AccountRight): Promise<boolean> =>
  includes((await membershipOf(services, c)).role, right);

/** Throws where the actor's role in the account does not include this. */
export async function requireRight(services: ConsoleServices, c: RequestContext, right: AccountRight): Promise<void> {
  if (await has(services, c, right)) return;
  throw new GatewayError('forbidden', 'Your role in this account does not include this.', {
    code: 'role_not_included',
  });
}

/** A service that this gateway may lack. */
export function need<T>(services: ConsoleServices, service: Service<T>): T {
  const found = services.find(service);
  if (found !== undefined) return found;
  throw new GatewayError('not_found', `This gateway has no ${service.name}.`, { code: 'not_available' });
}

export const nothingHere = (what: string, field = 'id') =>
  new GatewayError('not_found', `There is no such ${what}.`, { field });

/** Writes an audit row before a change is made, and its outcome after. */
export async function audited<T>(
  services: ConsoleServices,
  c: RequestContext,
  change: {
    readonly action: string;
    readonly subject: string;
    readonly reason?: string | undefined;
    readonly changes?: readonly AuditChange[] | undefined;
    /** Where it is not the one that the actor has chosen. */
    readonly accountId?: string | undefined;
  },
  work: (auditId: string) => Promise<T>,
  outcomeOf: (value: T) => string = () => 'done',
): Promise<T> {
  const { action, subject, reason, changes } = change;
  const actor = actorOf(c);
  const accountId = change.accountId ?? (await c.get('membership'))?.accountId;
  const row = { actor, action, subject, reason, address: c.env.address, changes };
  const end = await services.audit.begin({ ...row, accountId });
  try {
    const value = await work(end.id);
    await end(outcomeOf(value));
    return value;
  } catch (error) {
    const { code, kind } = toGatewayError(error);
    await end(code ?? kind);
    throw error;
  }
}

/** What handlers stand on: the services of the gateway, who asks, and how a change is written down. */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Answer, Clock, Host, Service, UpstreamRequest } from '../../../core/contract.ts';
import { GatewayError, toGatewayError } from '../../../core/errors.ts';
import type { Actor } from '../actor.ts';
import type { Throttle } from '../people/throttle.ts';
import type { Audit, People, Tokens } from '../people.ts';

export interface Console {
  readonly find: Host['find'];
  readonly clock: Clock;
  readonly people: People;
  readonly tokens: Tokens;
  readonly audit: Audit;
  readonly throttle: Pick<Throttle, 'take'>;
  readonly settings: {
    /** What the pages call this gateway. */
    readonly name: string;
    readonly signUp: 'open' | 'invite' | 'closed';
    readonly mail: boolean;
    readonly oidc: readonly { readonly id: string; readonly name: string }[];
  };
}

export interface Setting {
  Variables: {
    /** Absent on public routes that nobody has signed in for. */
    actor: Actor | undefined;
  };
  Bindings: {
    /** Where the request came from. */
    address: string;
    /** `https://gateway.example`: where the asking browser reaches this gateway. */
    origin: string;
    /** Puts a request to an upstream on the wire. */
    send: (request: UpstreamRequest) => Promise<Answer>;
  };
}
export type Ask = Context<Setting>;

/** A router of one topic; what a schema refuses is told in the one error shape. */
export function router() {
  return new OpenAPIHono<Setting>({
    defaultHook: (result) => {
      if (result.success) return;
      const issue = result.error.issues[0]!;
      const field = issue.path.join('.') || result.target;
      throw new GatewayError('invalid_request', `${field}: ${issue.message}`, { field });
    },
  });
}

/** Whoever asks; access has made sure that there is somebody. */
export function actorOf(ask: Ask): Actor {
  const actor = ask.get('actor');
  if (actor === undefined) throw new GatewayError('unauthenticated', 'Sign in first.');
  return actor;
}

/** The own gateway account of whoever asks. */
export function ownAccount(hall: Console, ask: Ask): Promise<string> {
  return hall.people.accountOf(actorOf(ask).id);
}

/** A service that this gateway may lack. */
export function need<T>(hall: Console, service: Service<T>): T {
  const found = hall.find(service);
  if (found !== undefined) return found;
  throw new GatewayError('not_found', `This gateway has no ${service.name}.`, { code: 'not_available' });
}

export const nothingHere = (what: string, field = 'id') =>
  new GatewayError('not_found', `There is no such ${what}.`, { field });

/** Writes down who changes what before it is done, and what came of it after. */
export async function audited<T>(
  hall: Console,
  ask: Ask,
  change: { readonly action: string; readonly subject: string; readonly reason?: string | undefined },
  work: () => Promise<T>,
  outcomeOf: (value: T) => string = () => 'done',
): Promise<T> {
  const { action, subject, reason } = change;
  const end = await hall.audit.begin({ actor: actorOf(ask), action, subject, reason, address: ask.env.address });
  try {
    const value = await work();
    await end(outcomeOf(value));
    return value;
  } catch (error) {
    const { code, kind } = toGatewayError(error);
    await end(code ?? kind);
    throw error;
  }
}

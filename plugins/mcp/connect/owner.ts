/** For whom a connection to a server is: a person in an account, or the account. Pure. */
import type { Caller } from '../../common/domain/accounts.ts';
import type { ServerConfig } from '../config.ts';

export type ConnectConfig = NonNullable<ServerConfig['connect']>;

export interface Who {
  readonly accountId: string;
  /** undefined: a service's key. */
  readonly person: string | undefined;
}

export const whoIs = ({ accountId, attribution }: Caller): Who => ({ accountId, person: attribution?.person });

/** undefined: the server is connected by people, and this is no person. */
export function ownerOf({ per }: ConnectConfig, { accountId, person }: Who): string | undefined {
  if (per === 'account') return `account ${accountId}`;
  return person === undefined ? undefined : `person ${accountId} ${person}`;
}

/** Who an owner is. */
export function whoOwns(owner: string): Who {
  const [, accountId = '', person] = owner.split(' ');
  return { accountId, person };
}

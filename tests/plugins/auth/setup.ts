/** An auth plugin on a fresh database, with an account, and requests to send to it. */
import { inspect } from 'node:util';
import type { CommandResult } from '../../../core/contract/commands.ts';
import type { PluginInstance } from '../../../core/contract/contract.ts';
import type { GatewayError } from '../../../core/contract/errors.ts';
import auth from '../../../plugins/auth/index.ts';
import { type Accounts, accounts, type Caller, caller } from '../../../plugins/common/domain/accounts.ts';
import { database } from '../../../plugins/common/domain/database.ts';
import { type FakeHost, fakeExchange, fakeHost, okAnswer, setUp } from '../../helpers/fakes.ts';
import { type EmbeddedDatabase, openEmbedded } from './embedded.ts';

export interface Sent {
  headers?: Record<string, string>;
  query?: string;
  remoteAddress?: string;
}

export interface Gate {
  host: FakeHost;
  part: PluginInstance;
  db: EmbeddedDatabase;
  book: Accounts;
  accountId: string;
  newKey(options?: { models?: string[]; expiresAt?: Date }): Promise<string>;
  /** The caller that was stated, or the refusal. */
  send(request: Sent | string): Promise<Caller>;
  refusal(request: Sent | string): Promise<GatewayError>;
  command(name: string, values?: Record<string, string>): Promise<CommandResult>;
  /** Everything that was logged, as text. */
  log(): string;
}

export async function openGate(section: unknown = {}, db?: EmbeddedDatabase): Promise<Gate> {
  const host = fakeHost();
  const used = db ?? (await openEmbedded());
  host.provide(database, used);
  const part = await setUp(auth, host, section);
  const book = host.get(accounts);
  const accountId = ((await book.find('acme')) ?? (await book.create('acme', 'pro'))).id;
  used.statements = [];

  async function send(request: Sent | string): Promise<Caller> {
    const {
      headers = {},
      query = '',
      remoteAddress = '192.0.2.1',
    } = typeof request === 'string' ? { headers: { authorization: `Bearer ${request}` } } : request;
    const exchange = fakeExchange({ request: { headers, query: new URLSearchParams(query), remoteAddress } });
    await part.handle!(exchange, async () => okAnswer);
    return exchange.get(caller);
  }

  return {
    host,
    part,
    db: used,
    book,
    accountId,
    send,
    newKey: async (options = {}) => (await book.createKey(accountId, { name: 'test', ...options })).key,
    async refusal(request) {
      try {
        await send(request);
      } catch (error) {
        return error as GatewayError;
      }
      throw new Error('was admitted');
    },
    async command(name, values = {}) {
      return part.commandLine!.commands!.find((command) => command.name === name)!.run(values);
    },
    log: () => inspect(host.lines, { depth: 10 }),
  };
}

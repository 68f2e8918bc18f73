/** What is wrong with the servers of a configuration beyond their forms: said at the start, by `check` and at a reload. */
import type { Fault, Host } from '../../core/contract/contract.ts';
import { database } from '../common/domain/database.ts';
import type { McpConfig, ServerConfig } from './config.ts';
import { documentFault } from './http-api/read.ts';

export async function serverFaults({ servers, commands }: McpConfig, host: Host): Promise<readonly Fault[]> {
  const faults = await Promise.all(
    Object.entries(servers).map(async ([name, settings]): Promise<Fault | undefined> => {
      const [member, message] = mistake(settings, commands) ?? wrongConnect(settings, host) ?? [];
      if (member !== undefined) return { path: ['servers', name, member], message: `${message}.` };
      return settings.openapi === undefined ? undefined : documentFault(name, settings, host);
    }),
  );
  return faults.filter((fault) => fault !== undefined);
}

function mistake(
  { url, command, openapi, oauth }: ServerConfig,
  commands: boolean,
): readonly [member: string, message: string] | undefined {
  if (url === undefined && command === undefined)
    return ['url', 'a server needs its address, or a program as `command`'];
  if (command !== undefined) {
    if (url !== undefined) return ['command', 'a server is a program or has an address, not both'];
    if (!commands) return ['command', 'programs are servers only where `mcp.commands` is true'];
    if (openapi !== undefined || oauth !== undefined) return ['command', 'a program has neither `openapi` nor `oauth`'];
  }
  if (openapi !== undefined && !/^https?:/.test(url ?? ''))
    return ['url', 'the address of an HTTP API must be an http(s) address'];
  return undefined;
}

function wrongConnect(
  { connect, url, openapi, oauth }: ServerConfig,
  host: Host,
): readonly [member: string, message: string] | undefined {
  if (connect === undefined) return undefined;
  if (!/^https?:/.test(url ?? '') || openapi !== undefined)
    return ['connect', 'only a server of the protocol with an http(s) address is connected by people'];
  if (oauth !== undefined) return ['connect', 'a server has `connect` or `oauth`, not both'];
  if (host.find(database) === undefined) return ['connect', 'connections need a database, by the plugin `storage`'];
  return undefined;
}

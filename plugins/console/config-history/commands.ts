/** `config history`, `config diff` and `config restore`: the applied configurations on the command line. */
import { hostname, userInfo } from 'node:os';
import type { Command } from '../../../core/contract/commands.ts';
import { configFiles } from '../../../core/contract/config-files.ts';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Database } from '../../common/domain/database.ts';
import { openAudit } from '../people/audit.ts';
import { loadSecrets } from '../people/secrets.ts';
import { consoleTables } from '../people/tables.ts';
import type { Audit } from '../people.ts';
import { ConfigHistory, type FileDifference, type HistoryStore, type KeptVersion } from './history.ts';
import { lineDiff } from './line-diff.ts';
import { openHistoryStore } from './store.ts';

interface CommandHistory {
  readonly history: ConfigHistory;
  readonly store: HistoryStore;
  readonly audit: Audit;
  readonly files: Pick<ReturnType<typeof filesOf>, 'running' | 'onDisk'>;
}

export interface CommandParts {
  readonly host: Host;
  readonly store: Database;
  readonly secrets: readonly string[];
}

const filesOf = (host: Host) => host.get(configFiles);

async function openFor({ host, store, secrets: configured }: CommandParts): Promise<CommandHistory> {
  const { clock, random } = host;
  const tables = consoleTables(store.schema);
  const secrets = await loadSecrets(store.orm, tables, configured, random);
  const kept = openHistoryStore({ store, clock, random, secrets: () => secrets, node: hostname() });
  const newId = () => random.bytes(16).toString('hex');
  const files = filesOf(host);
  return {
    history: new ConfigHistory(kept, () => files),
    store: kept,
    audit: openAudit(store.orm, tables, { clock, newId }),
    files,
  };
}

export function historyCommands(parts: CommandParts): Command[] {
  return [historyCommand(parts), diffCommand(parts), restoreCommand(parts)];
}

function historyCommand(parts: CommandParts): Command {
  return {
    name: 'config history',
    summary: 'Lists the applied configurations, newest first',
    async run() {
      const { history } = await openFor(parts);
      const { versions, running } = await history.list();
      const lines = versions.map((kept) => lineOf(kept, kept.version === running));
      return {
        json: versions.map((kept) => ({ ...kept, isOnDisk: kept.version === running })),
        text: lines.length === 0 ? 'No configuration was applied yet.' : lines.join('\n'),
      };
    },
  };
}

function lineOf({ version, at, source, actor, node, reason }: KeptVersion, isOnDisk: boolean): string {
  const who = actor ?? node;
  const why = reason === undefined ? '' : `: ${reason}`;
  const mark = isOnDisk ? ' (as on the disk)' : '';
  return `${String(version).padStart(4)}  ${new Date(at).toISOString()}  ${source.padEnd(8)} ${who}${why}${mark}`;
}

function diffCommand(parts: CommandParts): Command {
  return {
    name: 'config diff',
    summary: 'Compares an applied configuration with another one, or with the files on the disk',
    arguments: ['<from>', '[to]'],
    async run({ from, to }) {
      const { history } = await openFor(parts);
      const differences = await history.differences(versionOf(from), to === undefined ? undefined : versionOf(to));
      return { json: differences, text: textOf(differences) };
    },
  };
}

function restoreCommand(parts: CommandParts): Command {
  return {
    name: 'config restore',
    summary: 'Checks an applied configuration and writes its files; the gateway applies them as it does any change',
    arguments: ['<version>'],
    options: {
      '--reason <text>': 'why, for the audit log',
      '--file <path>': 'only this file of it, as `config diff` names it',
      '--dry-run': 'shows the difference and what the check finds, and writes nothing',
    },
    async run({ version: given, reason, file, dryRun }) {
      const version = versionOf(given);
      const opened = await openFor(parts);
      const only = typeof file === 'string' ? [file] : undefined;
      const { check, differences, state } = await opened.history.plan(version, only);
      const said = [
        textOf(differences),
        ...check.problems.map(({ where, message }) => `${where}: ${message}`),
        ...check.notices.filter(({ level }) => level === 'warning').map(({ text }) => `warning: ${text}`),
      ];
      const json = { differences, ...check };
      if (dryRun === true || check.problems.length > 0)
        return { json, text: said.join('\n'), exitCode: check.problems.length > 0 ? 1 : 0 };
      if (typeof reason !== 'string' || reason.trim() === '')
        throw new GatewayError('invalid_request', 'Say why: --reason TEXT, or look first with --dry-run.', {
          field: 'reason',
        });
      await restore(opened, version, state, only, reason.trim());
      return { json, text: [...said, `The files of version ${version} are written.`].join('\n') };
    },
  };
}

async function restore(
  { history, store, audit, files }: CommandHistory,
  version: number,
  state: string,
  only: readonly string[] | undefined,
  reason: string,
): Promise<void> {
  const actor = `command line (${userInfo().username}@${hostname()})`;
  const subject = `version ${version}`;
  const end = await audit.begin({
    actor: { kind: 'token', id: 'command', label: actor, role: 'operator' },
    action: 'config.restore',
    subject,
    reason,
    address: 'local',
  });
  try {
    await history.restore(version, state, only);
    const running = files.running();
    const onDisk = await files.onDisk(running.map(({ path }) => path));
    const texts = running.map(({ path, text }) => ({ path, text: onDisk.get(path) ?? text }));
    await store.record({ texts, source: 'command', actor, reason, auditId: end.id });
    await end('done');
  } catch (error) {
    await end(error instanceof GatewayError ? (error.code ?? error.kind) : 'internal');
    throw error;
  }
}

function versionOf(given: string | boolean | undefined): number {
  const version = Number(given);
  if (Number.isSafeInteger(version) && version > 0) return version;
  throw new GatewayError('invalid_request', 'A version is one of the numbers that `config history` lists.', {
    field: 'version',
  });
}

function textOf(differences: readonly FileDifference[]): string {
  if (differences.length === 0) return 'No difference.';
  return differences
    .map(({ path, before, after }) => {
      const what = before === undefined ? ' (new)' : after === undefined ? ' (not there)' : '';
      return [`${path}${what}`, ...lineDiff(before ?? '', after ?? '')].join('\n');
    })
    .join('\n\n');
}

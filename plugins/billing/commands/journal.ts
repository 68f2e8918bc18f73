/** The operator's commands on a journal: inspect one that no start accepts, apply its sound records, find those that were moved away. */
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { formatUsd } from '../../common/domain/money.ts';
import type { Values } from '../../common/kit/commands/arguments.ts';
import { applySound, type Findings, findingsIn, keepRest, sumsByAccount } from '../journal/salvage.ts';
import type { CommandTools } from './arguments.ts';

const options = { '--directory <path>': 'A journal that was moved away; otherwise that of this gateway' };

export function journalCommands(tools: CommandTools): Command[] {
  return [
    {
      name: 'journal inspect',
      summary: 'Shows what a journal holds, where it is damaged, and what of it the database lacks; changes nothing',
      options,
      run: async (values) => {
        const findings = await findingsIn(tools.store, tools.journal.files, directoryOf(tools, values));
        return { json: jsonOf(findings), text: linesOf(findings).join('\n') };
      },
    },
    {
      name: 'journal salvage',
      summary:
        'Applies the sound records of a damaged or moved-away journal, keeps the rest in a file, and moves the journal away',
      options,
      run: (values) => salvage(tools, directoryOf(tools, values)),
    },
  ];
}

function directoryOf({ journal }: CommandTools, { directory }: Values): string {
  const path = typeof directory === 'string' ? resolve(directory) : journal.directory;
  if (existsSync(path) && isJournal(path)) return path;
  throw new GatewayError('not_found', `${path} holds no journal.`, { field: 'directory' });
}

function isJournal(path: string): boolean {
  return readdirSync(path).some((name) => name === 'name' || name === 'position' || /^\d{16}\.journal$/.test(name));
}

async function salvage({ store, host, journal }: CommandTools, directory: string): Promise<CommandResult> {
  const { files } = journal;
  const lock = files.lock(join(directory, 'lock'));
  try {
    const findings = await findingsIn(store, files, directory);
    const isOwn = directory === journal.directory;
    if (findings.isWhole && isOwn) {
      throw new GatewayError(
        'conflict',
        `${directory} is whole: a start of the gateway applies it, with what was interrupted.`,
      );
    }
    const known = findings.name === undefined || (await journal.cursorOf(findings.name)) !== undefined;
    if (!known)
      throw new GatewayError('conflict', `The database does not know journal ${findings.name}: it is of another one.`);
    const charged = await applySound(store, findings.lacking);
    const at = host.clock.now();
    const moveTo = isOwn ? `${directory}.salvaged-${new Date(at).toISOString().replaceAll(/[:.]/g, '-')}` : undefined;
    const kept = keepRest(findings, at, moveTo);
    const sums = sumsByAccount([...charged].map(([account, amount]) => ({ account, amount })));
    const text = [
      `${findings.lacking.length} ended calls were applied${sums.length > 0 ? `: ${accountsOnly(sums)}` : ''}.`,
      ...restLines(findings),
      `The rest is listed in ${kept.file}.`,
      ...(isOwn ? ['The gateway can be started: it begins a new journal.'] : []),
      ...(store.shared === true && findings.name !== undefined
        ? [`What the node had leased stays blocked until "gateway leases release ${findings.name}".`]
        : []),
    ];
    const json = {
      applied: findings.lacking.length,
      charged: Object.fromEntries([...charged].map(([id, sum]) => [id, formatUsd(sum)])),
      ...kept,
    };
    return { json: { ...jsonOf(findings), ...json }, text: text.join('\n') };
  } finally {
    lock.release();
  }
}

const accountsOnly = (sums: readonly string[]) => sums.map((sum) => sum.replace(/ \(1 calls\)$/, '')).join(', ');

function linesOf(findings: Findings): string[] {
  const { directory, name, files, ends, lacking, isWhole } = findings;
  const sums = sumsByAccount(
    lacking.map((end) => ({ account: end.account, amount: end.kind === 'SETTLE' ? BigInt(end.cost) : 0n })),
  );
  return [
    `${directory}: journal ${name ?? 'without a name'}, ${isWhole ? 'whole' : 'damaged'}`,
    ...files.map(({ path, bytes, records }) => `  ${basename(path)}: ${bytes} bytes, ${records} sound records`),
    `${ends.length} ended calls, of which the database lacks ${lacking.length}${sums.length > 0 ? ':' : '.'}`,
    ...sums.map((sum) => `  ${sum}`),
    ...restLines(findings),
  ];
}

/** Records that no start and no salvage can apply. */
function restLines({ damage, missing, positionFault, left, directory }: Findings): string[] {
  const sums = sumsByAccount(left.map(({ account, held }) => ({ account, amount: held })));
  return [
    ...damage.map(({ path, from, to }) => `Damaged: ${path}, bytes ${from} to ${to}.`),
    ...missing.map(({ first, last }) => `Missing: records ${first} to ${last}.`),
    ...(positionFault === undefined ? [] : [`${directory}: ${positionFault}.`]),
    ...(left.length === 0
      ? ['No call is without an end.']
      : [`${left.length} calls have no end in it, and are not charged; what they held, by account:`]),
    ...sums.map((sum) => `  ${sum}`),
  ];
}

function jsonOf({ directory, name, files, damage, missing, positionFault, isWhole, ends, lacking, left }: Findings) {
  return {
    journal: name ?? null,
    directory,
    whole: isWhole,
    files,
    damage,
    missing,
    position: positionFault ?? null,
    ended: ends.length,
    lacking: lacking.length,
    open: left.map(({ held, ...call }) => ({ ...call, held: formatUsd(held) })),
  };
}

/** Open calls of each moved-away journal in the data directory that belongs to this database. */
export async function movedAway(tools: CommandTools): Promise<string[]> {
  const { host, journal, store } = tools;
  const near = [host.directory, dirname(journal.directory)].flatMap(foldersIn);
  const candidates = new Set([...near, ...near.flatMap(foldersIn)].filter((path) => path !== journal.directory));
  const notices: string[] = [];
  for (const path of candidates) {
    if (!existsSync(join(path, 'name')) || !isJournal(path)) continue;
    const findings = await findingsIn(store, journal.files, path);
    if (findings.name === undefined || (await journal.cursorOf(findings.name)) === undefined) continue;
    const { lacking, left } = findings;
    if (lacking.length + left.length === 0) continue;
    const sums = sumsByAccount([
      ...left.map(({ account, held }) => ({ account, amount: held })),
      ...lacking.map((end) => ({ account: end.account, amount: BigInt(end.held) })),
    ]);
    notices.push(
      `${path}: ${lacking.length} ended calls that are not charged and ${left.length} calls without an end, which held: ${sums.join(', ')}; see "gateway journal inspect --directory ${path}"`,
    );
  }
  return notices;
}

function foldersIn(path: string): string[] {
  if (!existsSync(path)) return [];
  return readdirSync(path, { withFileTypes: true })
    .filter((each) => each.isDirectory() && !each.name.startsWith('postgres'))
    .map(({ name }) => join(path, name));
}

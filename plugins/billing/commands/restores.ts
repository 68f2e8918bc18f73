/** The operator's answer to a database that was put back: lists missing movements, names repeatable ones, and admits money. */
import type { CommandResult } from '../../../core/contract/commands.ts';
import { accounts } from '../../common/domain/accounts.ts';
import { type MissingPayment, payments } from '../../common/domain/admin/ledger.ts';
import { formatUsd, money } from '../../common/domain/money.ts';
import type { Movement } from '../ledger/entries.ts';
import type { Restore } from '../restores/rows.ts';
import { type RestoreWatch, sentenceOf } from '../restores/watch.ts';
import type { CommandTools } from './arguments.ts';

const hourMs = 3_600_000;

interface Missing {
  readonly waiting: readonly Restore[];
  readonly movements: readonly (Movement & { readonly name: string })[];
  /** Undefined: no payment service is configured; an error: it did not answer. */
  readonly paid: readonly MissingPayment[] | Error | undefined;
  readonly silent: readonly string[];
}

/** Lists missing movements of waiting and of accepted restores, then accepts the waiting ones. */
export async function acceptRestore(tools: CommandTools): Promise<CommandResult> {
  const { host, watch } = tools;
  await watch?.look();
  const missing = await missingIn(tools, watch);
  const accepted = (await watch?.rows.accept()) ?? 0;
  if (accepted > 0) host.log.info({ accepted }, 'an operator has accepted that the database was put back');
  const { waiting, movements, paid, silent } = missing;
  const json = {
    accepted,
    restores: waiting.map(({ lost: _, since, until, ...rest }) => {
      return { ...rest, since: new Date(since).toISOString(), until: new Date(until).toISOString() };
    }),
    missing: movements.map(({ amount, at, ...rest }) => {
      return { ...rest, usd: usdOf(amount), at: new Date(at).toISOString() };
    }),
    payments: paid instanceof Error ? null : (paid ?? []).map((each) => ({ ...each, amount: formatUsd(each.amount) })),
    not_heard_from: silent,
  };
  return { json, text: textOf(missing, accepted, host.clock.now()) };
}

async function missingIn({ host }: CommandTools, watch: RestoreWatch | undefined): Promise<Missing> {
  if (watch === undefined) return { waiting: [], movements: [], paid: undefined, silent: [] };
  const { rows } = watch;
  const [waiting, before] = [await rows.list('waiting'), await rows.list('accepted')];
  const byReference = new Map(
    [...before, ...waiting].flatMap(({ lost }) => lost.map((each) => [each.reference, each])),
  );
  const lacking = await rows.lacking([...byReference.keys()]);
  const directory = host.find(accounts);
  const movements = await Promise.all(
    [...byReference.values()]
      .filter(({ reference }) => lacking.has(reference))
      .sort((one, other) => one.at - other.at)
      .map(async (each) => ({ ...each, name: (await directory?.find(each.account))?.name ?? each.account })),
  );
  // A page is paid after it was made.
  const since = Math.min(...waiting.map((each) => each.since)) - hourMs;
  const service = waiting.length > 0 ? host.find(payments) : undefined;
  const paid = await service?.missing(since).catch((error: unknown) => error as Error);
  return { waiting, movements, paid, silent: await rows.silent() };
}

function textOf({ waiting, movements, paid, silent }: Missing, accepted: number, now: number): string {
  return [
    ...waiting.map((found) => `The database was put back: ${sentenceOf(found)} (found by ${found.journal}).`),
    ...(waiting.length === 0 ? ['No restoration of the database waits for an answer.'] : []),
    ...(movements.length === 0
      ? ['No movement of money that the gateways remember is missing.']
      : ['Missing movements of money. Each counts once, however often it is repeated:']),
    ...movements.flatMap((each) => linesOf(each, now)),
    ...paymentLines(paid),
    ...silent.map(
      (journal) =>
        `${journal} has not been started since, and may remember more: start it, or ask its data directory with this command.`,
    ),
    ...(accepted > 0 ? ['Accepted: money can come in again.'] : []),
  ].join('\n');
}

function linesOf(movement: Movement & { readonly name: string }, now: number): string[] {
  const { at, kind, amount, name, reason, reference } = movement;
  const line = [new Date(at).toISOString(), kind.padEnd(8), `${usdOf(amount)} USD`, name, reason, reference].join('  ');
  return [line, `    ${againBy(movement, now)}`];
}

function againBy(movement: Movement & { readonly name: string }, now: number): string {
  const { kind, name, reason, reference, of, expiresAt } = movement;
  const usd = usdOf(movement.amount.replace('-', ''));
  const options = `--reason ${quoted(reason)} --reference ${quoted(reference)}`;
  if (reference.startsWith('code:')) return 'the code can be redeemed again';
  if (reference.startsWith('stripe:')) return `gateway payments look ${reference.slice('stripe:'.length)}`;
  if (kind === 'CREDIT') {
    if (expiresAt !== undefined && expiresAt <= now) return 'it has expired';
    const lasts = expiresAt === undefined ? '' : ` --lasts ${Math.ceil((expiresAt - now) / hourMs)}h`;
    return `gateway accounts credit ${quoted(name)} ${usd} ${options}${lasts}`;
  }
  if (kind === 'DEBIT') return `gateway accounts debit ${quoted(name)} ${usd} ${options}`;
  if (kind === 'REFUND' && of !== undefined)
    return `gateway accounts refund ${quoted(name)} ${usd} --request ${of} ${options}`;
  return kind === 'PURCHASE' ? 'the plan can be bought again' : 'to be made again by its reference';
}

function paymentLines(paid: Missing['paid']): string[] {
  if (paid === undefined) return [];
  if (paid instanceof Error) return [`The payment service could not be asked: ${paid.message}`];
  if (paid.length === 0) return ['The payment service has no payment that the database lacks.'];
  return [
    'Paid at the payment service, and not credited here:',
    ...paid.map(({ session, accountId, amount, begunAt }) => {
      const line = [new Date(begunAt).toISOString(), `${formatUsd(amount)} USD`, accountId ?? 'account unknown'].join(
        '  ',
      );
      return `${line}\n    gateway payments look ${session}`;
    }),
  ];
}

function usdOf(nano: string): string {
  return formatUsd(money(BigInt(nano)));
}

/** The text as one argument of a shell. */
function quoted(text: string): string {
  return /^[\w:.@/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The command `requests show`: the timeline of one request, from arrival to charge. */
import type { Command } from '../../core/contract/commands.ts';
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { type LedgerQueries, ledgerQueries } from '../common/domain/admin/ledger.ts';
import type { RecordedBodies, RecordedBody, RequestBodies } from '../common/domain/admin/recorded-bodies.ts';
import type { RequestQueries, RequestView } from '../common/domain/admin/requests.ts';
import { formatUsd } from '../common/domain/money.ts';

type Charge = Awaited<ReturnType<LedgerQueries['charge']>>;

export function commandsOf(
  host: Pick<Host, 'find'>,
  queries: RequestQueries,
  recordedBodies: RecordedBodies,
): Command[] {
  return [
    {
      name: 'requests show',
      summary: 'Shows the timeline of one request: limit, price, route, attempts, conversion, charge, timings',
      arguments: ['<id>'],
      options: { '--bodies': 'the bodies of the request and its answer, where they were recorded' },
      async run({ id, bodies }) {
        const wanted = String(id).replace(/^req_/, '');
        const row = await queries.find(wanted, undefined);
        if (row === undefined)
          throw new GatewayError(
            'not_found',
            `There is no request ${wanted}; rows are kept for a while, and written within a second.`,
            {
              field: 'id',
            },
          );
        const charge = await host.find(ledgerQueries)?.charge(wanted, undefined);
        const lines = [headOf(row), ...eventLines(row), ...moneyOf(charge)];
        if (bodies !== true) return { json: { ...row, charge: charge ?? null }, text: lines.join('\n') };
        const kept = await recordedBodies.find(wanted);
        return {
          json: { ...row, charge: charge ?? null, bodies: kept ?? null },
          text: [...lines, ...bodiesOf(kept)].join('\n'),
        };
      },
    },
  ];
}

function headOf(row: RequestView): string {
  const requested = [row.operation, row.model, row.protocol && `in ${row.protocol}`, row.streamed && 'streamed'].filter(
    Boolean,
  );
  const error = row.errorCode ?? row.errorKind;
  const ended = `${row.status}${error === undefined ? '' : ` ${error}`}, ${outcomes[row.outcome]}`;
  const first = row.firstByteMs === undefined ? '' : `first byte after ${Math.round(row.firstByteMs)} ms, `;
  const times = `${first}${Math.round(row.totalMs)} ms in all`;
  return `${row.id}  ${new Date(row.receivedAt).toISOString()}
${requested.join(' ')}: ${ended}; ${times}`;
}

const outcomes: Readonly<Record<RequestView['outcome'], string>> = {
  complete: 'sent to its end',
  client_left: 'the client left',
  failed: 'broken off',
};

/** The events that the plugins recorded. */
const eventLines = ({ story }: RequestView): string[] =>
  story.map(({ atMs, by, text }) => `${Math.round(atMs).toString().padStart(8)} ms  ${by.padEnd(16)}  ${text}`);

/** Its charge in the ledger at present. */
function moneyOf(charge: Charge): string[] {
  if (charge === undefined) return [];
  const own = charge.ownCost === undefined ? '' : `; own cost ${formatUsd(charge.ownCost)} USD`;
  const borne = charge.attempts
    .filter(({ absorbed }) => absorbed > 0n)
    .map(({ number, absorbed }) => `attempt ${number} cost the operator ${formatUsd(absorbed)} USD`);
  const lines = [
    `${formatUsd(charge.cost)} USD = ${charge.formula}${own}`,
    ...borne,
    ...(charge.refunded > 0n ? [`${formatUsd(charge.refunded)} USD given back`] : []),
  ];
  return lines.map((text) => `     ledger  ${'billing'.padEnd(16)}  ${text}`);
}

function bodiesOf(kept: RequestBodies | undefined): string[] {
  if (kept === undefined) return ['', 'No bodies were kept of it.'];
  const until = `kept until ${new Date(kept.expiresAt).toISOString()}`;
  return [...bodyOf(`request, ${until}`, kept.request), ...bodyOf('answer', kept.answer)];
}

function bodyOf(title: string, body: RecordedBody | undefined): string[] {
  if (body === undefined) return ['', `-- ${title}: none`];
  const { text, bytes, leftOut, mediaType } = body;
  const rest = leftOut > 0 ? [`-- ${leftOut} bytes were left out`] : [];
  return ['', `-- ${title}: ${bytes} bytes${mediaType === undefined ? '' : ` of ${mediaType}`}`, shown(text), ...rest];
}

/** Replaces control characters, so that a client's text cannot send commands to a terminal. */
function shown(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
}

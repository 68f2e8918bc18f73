/** The operator's command about one request: its story, from what was asked to what was paid, in the order of time. */
import type { Command, Host } from '../../core/contract.ts';
import {
  type BodyDesk,
  type KeptBodies,
  type KeptBody,
  type MoneyDesk,
  moneyDesk,
  type RequestDesk,
  type RequestView,
} from '../../core/desk.ts';
import { GatewayError } from '../../core/errors.ts';
import { formatUsd } from '../../core/money.ts';

type Charge = Awaited<ReturnType<MoneyDesk['charge']>>;

export function commandsOf(host: Pick<Host, 'find'>, desk: RequestDesk, bodyDesk: BodyDesk): Command[] {
  return [
    {
      name: 'requests show',
      summary: 'Tells the story of one request: limit, price, route, attempts, conversion, charge, timings',
      arguments: ['<id>'],
      options: { '--bodies': 'what the client sent and was told, where it was kept' },
      async run({ id, bodies }) {
        const wanted = String(id).replace(/^req_/, '');
        const row = await desk.find(wanted, undefined);
        if (row === undefined)
          throw new GatewayError(
            'not_found',
            `There is no request ${wanted}; rows are kept for a while, and written within a second.`,
            {
              field: 'id',
            },
          );
        const charge = await host.find(moneyDesk)?.charge(wanted, undefined);
        const told = [headOf(row), ...linesOf(row), ...moneyOf(charge)];
        if (bodies !== true) return { json: { ...row, charge: charge ?? null }, text: told.join('\n') };
        const kept = await bodyDesk.find(wanted);
        return {
          json: { ...row, charge: charge ?? null, bodies: kept ?? null },
          text: [...told, ...bodiesOf(kept)].join('\n'),
        };
      },
    },
  ];
}

function headOf(row: RequestView): string {
  const asked = [row.operation, row.model, row.protocol && `in ${row.protocol}`, row.streamed && 'streamed'].filter(
    Boolean,
  );
  const error = row.errorCode ?? row.errorKind;
  const ended = `${row.status}${error === undefined ? '' : ` ${error}`}, ${outcomes[row.outcome]}`;
  const first = row.firstByteMs === undefined ? '' : `first byte after ${Math.round(row.firstByteMs)} ms, `;
  const times = `${first}${Math.round(row.totalMs)} ms in all`;
  return `${row.id}  ${new Date(row.receivedAt).toISOString()}
${asked.join(' ')}: ${ended}; ${times}`;
}

const outcomes: Readonly<Record<RequestView['outcome'], string>> = {
  complete: 'told to its end',
  client_left: 'the client left',
  failed: 'broken off',
};

/** What the plugins told while it ran. */
const linesOf = ({ story }: RequestView): string[] =>
  story.map(({ atMs, by, text }) => `${Math.round(atMs).toString().padStart(8)} ms  ${by.padEnd(16)}  ${text}`);

/** What came of it in the books, as they are now. */
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
  return lines.map((text) => `      books  ${'billing'.padEnd(16)}  ${text}`);
}

function bodiesOf(kept: KeptBodies | undefined): string[] {
  if (kept === undefined) return ['', 'No bodies were kept of it.'];
  const until = `kept until ${new Date(kept.expiresAt).toISOString()}`;
  return [...bodyOf(`request, ${until}`, kept.request), ...bodyOf('answer', kept.answer)];
}

function bodyOf(title: string, body: KeptBody | undefined): string[] {
  if (body === undefined) return ['', `-- ${title}: none`];
  const { text, bytes, leftOut, mediaType } = body;
  const rest = leftOut > 0 ? [`-- ${leftOut} bytes were left out`] : [];
  return ['', `-- ${title}: ${bytes} bytes${mediaType === undefined ? '' : ` of ${mediaType}`}`, shown(text), ...rest];
}

/** Whatever a client wrote, a terminal is not told to do anything. */
function shown(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
}

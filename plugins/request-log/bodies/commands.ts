/** Commands about recorded bodies: start and stop recordings, and delete bodies. */
import type { Command } from '../../../core/contract/commands.ts';
import type { Host } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { duration } from '../../../core/contract/schema.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { accounts } from '../../common/domain/accounts.ts';
import type { RecordedBodies, Recording } from '../../common/domain/admin/recorded-bodies.ts';
import type { Values } from '../../common/kit/commands/arguments.ts';

export function bodyCommands(host: Pick<Host, 'find' | 'clock'>, queries: RecordedBodies): Command[] {
  return [
    {
      name: 'requests record',
      summary: 'Keeps bodies of requests and answers, masked, for a limited time',
      options: {
        '--account <account>': 'of this account, by name or id',
        '--key <id>': 'of this key',
        '--model <model>': 'for this model',
        '--errors': 'only of requests that fail',
        '--for <duration>': 'how long, such as 30m or 2h; 7d at most',
      },
      async run(values) {
        const terms = {
          accountId: await accountId(host, text(values, 'account')),
          keyId: text(values, 'key'),
          model: text(values, 'model'),
          errorsOnly: values['errors'] === true,
          until: host.clock.now() + spanOf(text(values, 'for')),
        };
        const recording = await queries.record(terms, 'command line');
        return { json: recording, text: lineOf(recording) };
      },
    },
    {
      name: 'requests recordings',
      summary: 'Lists the recordings of bodies that run',
      async run() {
        const recordings = await queries.recordings();
        return { json: recordings, text: recordings.map(lineOf).join('\n') || 'None runs.' };
      },
    },
    {
      name: 'requests stop-recording',
      summary: 'Ends a recording of bodies; kept bodies stay until they expire',
      arguments: ['<id>'],
      async run({ id }) {
        await queries.stopRecording(String(id));
        return { json: { id, stopped: true }, text: `${String(id)} was stopped.` };
      },
    },
    {
      name: 'requests forget-bodies',
      summary: 'Deletes kept bodies at once: of one request, of one account, or all',
      options: {
        '--request <id>': 'of this request',
        '--account <account>': 'of this account, by name or id',
        '--all': 'of everybody',
      },
      async run(values) {
        const account = await accountId(host, text(values, 'account'));
        const requestId = text(values, 'request')?.replace(/^req_/, '');
        const named = account !== undefined || requestId !== undefined;
        if (named === (values['all'] === true))
          throw invalid('Say which bodies to delete: --request, --account or --all.');
        const forgotten = await queries.delete({ accountId: account, requestId });
        return { json: { forgotten }, text: `Bodies of ${forgotten} requests were deleted.` };
      },
    },
  ];
}

function text(values: Values, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

async function accountId(host: Pick<Host, 'find'>, named: string | undefined): Promise<string | undefined> {
  if (named === undefined) return undefined;
  const account = await host.find(accounts)?.find(named);
  if (account === undefined)
    throw new GatewayError('not_found', `There is no account "${named}".`, { field: 'account' });
  return account.id;
}

function spanOf(written: string | undefined): number {
  if (written === undefined) throw invalid('Say how long to record: --for 1h.', 'for');
  const span = duration().safeParse(written);
  if (!span.success) throw invalid(`--for ${span.error.issues[0]!.message}.`, 'for');
  return span.data;
}

function lineOf({ id, accountId: account, keyId, model, errorsOnly, until, by }: Recording): string {
  const whose = [
    account && `account ${account}`,
    keyId && `key ${keyId}`,
    model && `model ${model}`,
    errorsOnly && 'errors only',
  ].filter(Boolean);
  return `${id}  until ${new Date(until).toISOString()}  ${whose.join(', ')}  (${by})`;
}

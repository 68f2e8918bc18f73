/** The settings of `billing`. */
import type { Notice } from '../../core/contract/contract.ts';
import { count, duration, size, z } from '../../core/contract/schema.ts';
import { zoneOf } from '../../core/tools/time-zone.ts';
import { leastAfterMs } from './archive/format.ts';
import { budgetsSchema } from './budgets/settings.ts';
import type { HoldRules } from './reservations/call-terms.ts';

const holdSchema = z.strictObject({
  output_tokens: count()
    .default(4096)
    .describe(
      'Output tokens that a hold covers at most; a longer answer extends it by as many. Lower it when clients with small balances are refused; raise it to ask for extensions less often.',
    ),
  non_streaming: z
    .enum(['estimate', 'max'])
    .default('estimate')
    .describe(
      'Hold for an answer that is not streamed: output_tokens (estimate; it may cost more than the balance), or all that it can cost (max). Use max when no balance may become negative.',
    ),
});

export const configSchema = z.strictObject({
  hold: holdSchema.prefault({}).describe('How much is set aside for a call before it is sent.'),
  journal: z
    .strictObject({
      segment: size()
        .default(8 * 2 ** 20)
        .describe('Size at which the next journal file is begun. Raise it on busy machines with fast disks.'),
      limit: size()
        .default(4 * 2 ** 30)
        .describe(
          'Journal files on disk at most; beyond that new calls are refused. Raise it to bridge longer outages of the database.',
        ),
      backlog: count()
        .default(200_000)
        .describe(
          'Ended calls that may wait for the database before new calls are refused; as many KiB of journal text count as full, too. Raise it to bridge longer outages of the database.',
        ),
    })
    .prefault({})
    .describe('The local file in which every hold and charge is recorded before the database has it.'),
  archive: z
    .strictObject({
      after: duration()
        .refine((value) => value >= leastAfterMs, { error: 'must be at least 31d' })
        .optional()
        .describe(
          'Charged calls of months that ended longer ago than this move from the database to files, by account and month. Set it when the database grows beyond its disk; it needs the plugin files, and a bucket where several processes serve. Default: they stay.',
        ),
    })
    .prefault({})
    .describe('Old calls in files of the store of files; what they cost stays in the ledger.'),
  budgets: budgetsSchema,
  statements: z
    .strictObject({
      zone: z
        .string()
        .refine((name) => zoneOf(name) !== undefined, {
          error: 'must be a time zone by its IANA name, such as Europe/Berlin',
        })
        .optional()
        .describe(
          'An hour after each month of this time zone, or of its own, a statement of every account is sealed, by its IANA name. Set it to the zone that you write invoices in. Default: none are made.',
        ),
      issuer: z
        .string()
        .trim()
        .min(1)
        .max(200)
        .optional()
        .describe(
          "Who writes them: the name on their pages and in their FOCUS files. Set it to your company's name. Default: the gateway's.",
        ),
    })
    .prefault({})
    .describe('Sealed monthly statements of accounts, which a file of theirs proves.'),
  credit_lines: z
    .strictObject({
      pay_within: duration()
        .default(14 * 24 * 3_600_000)
        .describe(
          'Behind the end of a month: until then what was used in it is to be paid. Set it to the term that your invoices name.',
        ),
      stop_after: duration()
        .optional()
        .describe(
          'So long behind that the line brings nothing more until it is paid. Set it to stop accounts that do not pay; 0s stops them at once. Default: it goes on.',
        ),
    })
    .prefault({})
    .describe(
      'Money that operators let accounts use each month before they pay ("credit-lines set"), by months of the time zone of the account, of statements.zone without one, or of UTC.',
    ),
  nodes: count()
    .optional()
    .describe(
      'Processes that may serve from one PostgreSQL at once, draining ones included; one more does not start. Set it to the size of your fleet; beyond 1 files need a bucket. Default: 8.',
    ),
  accounts: count()
    .default(100_000)
    .describe(
      'Accounts whose balance is kept in memory at most. Raise it when more accounts call within a few minutes.',
    ),
});

export type Config = z.output<typeof configSchema>;

export const nodesOf = ({ nodes = 8 }: Pick<Config, 'nodes'>): number => nodes;

export function rulesOf({ hold }: Config): HoldRules {
  return { stepTokens: hold.output_tokens, nonStreaming: hold.non_streaming };
}

/** Valid settings that are probably mistakes. */
export function noticesOf(config: Config, isShared: boolean): Notice[] {
  const { nodes, journal, accounts } = config;
  const odd: [boolean, string][] = [
    [
      nodes === 0 && isShared,
      'billing.nodes is 0: no process can serve from this PostgreSQL. Write 1, or leave it out',
    ],
    [nodes === 0 && !isShared, 'billing.nodes is 0 and is ignored beside an embedded database: leave it out'],
    [journal.backlog === 0, 'billing.journal.backlog is 0: every call is refused'],
    [
      journal.limit < journal.segment,
      'billing.journal.limit is below billing.journal.segment: calls are refused before the first file is full',
    ],
    [accounts === 0, 'billing.accounts is 0: every call is refused'],
  ];
  return odd.flatMap(([isOdd, text]) => (isOdd ? [{ level: 'warning', text } as const] : []));
}

/** The setting `budgets`: ceilings for all accounts. */
import { z } from '../../../core/contract/schema.ts';
import '../../../core/tools/temporal.ts';
import { invalid } from '../../../core/json/request-body.ts';
import { zoneOf } from '../../../core/tools/time-zone.ts';
import { money } from '../../common/domain/money.ts';
import { usd } from '../../common/domain/money-schema.ts';
import {
  type BudgetRule,
  type BudgetTerms,
  budgetKinds,
  budgetPeriods,
} from '../../common/domain/organizations/budgets.ts';

function isDay(text: string): boolean {
  try {
    return Temporal.PlainDate.from(text).toString() === text;
  } catch {
    return false;
  }
}

const isTag = (text: string): boolean => /^[a-z][a-z0-9_.-]{0,31}=[A-Za-z0-9_.:/@-]{1,64}$/.test(text);

/** A billion USD: sums stay far below the limit of a `bigint` column. */
export const mostAmount = 10n ** 18n;

/** What all budgets have, by whomever they are set. */
const members = {
  models: z
    .array(z.string().regex(/^[^\s,]+$/, 'must be the id of a model, without spaces and commas'))
    .min(1)
    .max(100)
    .optional()
    .describe('Of models: their ids, with * for any part. Name the dear ones. Default: none.'),
  tag: z
    .string()
    .refine(isTag, 'must be a tag with its value, such as env=dev')
    .optional()
    .describe(
      'Of tag: the tag with its value, as calls have it by their keys or by x-gateway-tags. Name one that people may choose themselves, such as env=dev. Default: none.',
    ),
  by: z
    .enum(['account', 'person'])
    .optional()
    .describe(
      'Of models: who has such a budget, each account or each person. Choose person where one should not use up what is for all. Default: account.',
    ),
  amount: usd().describe('USD that may be spent in a period. Change it when the people in charge do.'),
  every: z
    .enum(budgetPeriods)
    .describe('The period after which all of it is there again; ever: never. Choose the one that is accounted for.'),
  zone: z
    .string()
    .refine((name) => zoneOf(name) !== undefined, 'must be a time zone by its IANA name, such as Europe/Berlin')
    .optional()
    .describe(
      "The time zone in which periods begin, by its IANA name. Set it where that of the people in charge is not the account's. Default: the account's own, UTC if it has none.",
    ),
  first: z
    .string()
    .refine(isDay, 'must be a day such as 2026-04-06')
    .optional()
    .describe(
      'The first day of some period, such as 2026-04-06, from which all others are counted. Set it for fiscal years. Default: calendar periods, and weeks from Monday.',
    ),
  hard: z
    .boolean()
    .optional()
    .describe(
      'Whether calls are refused when it is passed. Set false where only notices are to be sent. Default: true.',
    ),
  instead: z
    .string()
    .regex(/^[^\s,]+$/, 'must be the id of a model')
    .optional()
    .describe(
      'The model that takes calls which do not fit in it, at its own price; the header x-gateway-model names it. Calls that it cannot take, such as those that go on with what a vendor keeps, are refused. Set a cheaper one where any answer is better than none. Default: none.',
    ),
  warn: z
    .array(z.number().gt(0).max(1).multipleOf(0.001))
    .max(10)
    .optional()
    .describe(
      'Shares of it, such as [0.5, 0.8], at which the account gets a notice, once in each period; it needs the plugin notices. Set those at which there is still time to act. Default: none; with hard: false, 1.',
    ),
};

const budget = z
  .strictObject({
    of: z
      .enum(['account', 'project', 'person', 'models', 'tag'])
      .describe(
        'What has such a budget: each account, each project, each person, calls of some models, or calls with a tag. Choose the smallest that the people in charge answer for.',
      ),
    name: z
      .string()
      .optional()
      .describe(
        'Of project: the one that it is for. Name it for a ceiling of its own. Default: each that has none of its own for the same periods.',
      ),
    ...members,
  })
  .superRefine((given, context) => {
    refuseOdd(given, context);
    if (given.name !== undefined && given.of !== 'project')
      context.addIssue({ code: 'custom', path: ['name'], message: 'is for budgets of a project' });
  });

/** A budget of a single account. */
const own = z
  .strictObject({
    of: z.enum(budgetKinds),
    subject: z
      .string()
      .regex(/^[^\s:]{1,100}$/, 'must be an id')
      .optional(),
    ...members,
    amount: z.bigint().min(0n).max(mostAmount),
  })
  .superRefine((given, context) => {
    refuseOdd(given, context);
    const isOfOne = given.of === 'project' || given.of === 'person' || given.of === 'key';
    const message =
      given.of === 'key' ? 'must be the id of a key' : 'is the id of a project, a person or a key, for budgets of such';
    if (given.subject === undefined ? given.of === 'key' : !isOfOne)
      context.addIssue({ code: 'custom', path: ['subject'], message });
  });

function refuseOdd(
  {
    of,
    models,
    tag,
    by,
    instead,
    hard,
  }: Pick<BudgetRule, 'models' | 'tag' | 'by' | 'instead' | 'hard'> & { readonly of: string },
  context: z.RefinementCtx,
): void {
  const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
  if (instead !== undefined && hard === false) refuse('instead', 'is for budgets at which calls are refused');
  if (by !== undefined && of !== 'models') refuse('by', 'is for budgets of models');
  if ((models !== undefined) !== (of === 'models'))
    refuse('models', 'must be named for budgets of models, and for no others');
  if ((tag !== undefined) !== (of === 'tag')) refuse('tag', 'must be named for budgets of a tag, and for no others');
}

/** Throws invalid_request that names the field. */
export function validBudget(terms: BudgetTerms): BudgetTerms {
  const given = Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== undefined));
  const { data, error } = own.safeParse(given);
  if (data !== undefined) return { ...data, amount: money(data.amount) };
  const { path, message } = error!.issues[0]!;
  const field = String(path[0] ?? 'of');
  throw invalid(
    `${field} ${path.length === 0 || message.startsWith('must') || message.startsWith('is ') ? message : `is not valid: ${message}`}.`,
    field,
  );
}

export type Budget = z.output<typeof budget>;

export const budgetsSchema = z
  .array(budget)
  .max(50)
  .default([])
  .superRefine((budgets, context) => {
    const seen = new Set<string>();
    for (const [
      index,
      { amount: _amount, hard: _hard, warn: _warn, instead: _instead, ...counted },
    ] of budgets.entries()) {
      const text = JSON.stringify(counted);
      if (seen.has(text))
        context.addIssue({
          code: 'custom',
          path: [index],
          message: 'counts the same calls for the same periods as one before',
        });
      seen.add(text);
    }
  })
  .describe(
    'Ceilings on what is spent in a period, for all accounts, beside balances; a call that does not fit in one is refused with 402 budget_reached. Set them where many people spend one balance.',
  );

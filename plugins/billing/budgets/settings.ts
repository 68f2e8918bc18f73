/** The setting `budgets`: ceilings for all accounts. */
import { z } from '../../../core/contract/schema.ts';
import '../../../core/tools/temporal.ts';
import { zoneOf } from '../../../core/tools/time-zone.ts';
import { usd } from '../../common/domain/money-schema.ts';
import { everyNames } from './calendar.ts';

function isDay(text: string): boolean {
  try {
    return Temporal.PlainDate.from(text).toString() === text;
  } catch {
    return false;
  }
}

const budget = z
  .strictObject({
    of: z
      .enum(['account', 'project', 'person', 'models'])
      .describe(
        'What has such a budget: each account, each project, each person, or calls of some models. Choose the smallest that the people in charge answer for.',
      ),
    name: z
      .string()
      .optional()
      .describe(
        'Of project: the one that it is for. Name it for a ceiling of its own. Default: each that has none of its own for the same periods.',
      ),
    models: z
      .array(z.string().regex(/^[^\s,]+$/, 'must be the id of a model, without spaces and commas'))
      .min(1)
      .max(100)
      .optional()
      .describe('Of models: their ids, with * for any part. Name the dear ones. Default: none.'),
    by: z
      .enum(['account', 'person'])
      .optional()
      .describe(
        'Of models: who has such a budget, each account or each person. Choose person where one should not use up what is for all. Default: account.',
      ),
    amount: usd().describe('USD that may be spent in a period. Change it when the people in charge do.'),
    every: z
      .enum(everyNames)
      .describe('The period after which all of it is there again; ever: never. Choose the one that is accounted for.'),
    zone: z
      .string()
      .refine((name) => zoneOf(name) !== undefined, 'must be a time zone by its IANA name, such as Europe/Berlin')
      .default('UTC')
      .describe('The time zone in which periods begin, by its IANA name. Set it to that of the people in charge.'),
    first: z
      .string()
      .refine(isDay, 'must be a day such as 2026-04-06')
      .optional()
      .describe(
        'The first day of some period, such as 2026-04-06, from which all others are counted. Set it for fiscal years. Default: calendar periods, and weeks from Monday.',
      ),
  })
  .superRefine(({ of, name, models, by }, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    if (name !== undefined && of !== 'project') refuse('name', 'is for budgets of a project');
    if (by !== undefined && of !== 'models') refuse('by', 'is for budgets of models');
    if ((models !== undefined) !== (of === 'models'))
      refuse('models', 'must be named for budgets of models, and for no others');
  });

export type Budget = z.output<typeof budget>;

export const budgetsSchema = z
  .array(budget)
  .max(50)
  .default([])
  .superRefine((budgets, context) => {
    const seen = new Set<string>();
    for (const [index, { amount: _amount, ...counted }] of budgets.entries()) {
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

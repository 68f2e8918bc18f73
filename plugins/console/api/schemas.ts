/** Schemas that answers and requests of the API share: money, times, lists. */

import { z } from '@hono/zod-openapi';
import type { Page, PageRequest } from '../../common/domain/admin/pages.ts';
import { formatUsd, type Money, money, parseUsd } from '../../common/domain/money.ts';

declare const view: unique symbol;
/** Text that services have as another value. */
type Text<View> = z.ZodString & { readonly [view]: View };

export const usd = z
  .string()
  .openapi('Usd', { description: 'USD as exact decimal text.', example: '12.345678901' }) as Text<Money>;
export const instant = z
  .string()
  .openapi('Instant', { description: 'ISO 8601, UTC.', example: '2026-11-21T08:30:00.000Z' }) as Text<number>;
export const usage = z
  .record(z.string(), z.number())
  .openapi('Usage', { description: 'Tokens and pieces by class.', example: { input: 1200, output: 300 } });
export const id = z.string().min(1).max(200);
export const done = z.object({ ok: z.literal(true) }).openapi('Done');

export const iso = (at: number): string => new Date(at).toISOString();
export const isoOrNull = (at: number | undefined): string | null => (at === undefined ? null : iso(at));
export const usdText = (amount: Money): string => formatUsd(amount);
export const usdOrNull = (amount: Money | undefined): string | null =>
  amount === undefined ? null : formatUsd(amount);

/** What services return for a schema of answers: amounts, times in milliseconds, and nothing where the answer has null. */
type ViewOf<Schema> = Schema extends { readonly [view]: infer View }
  ? View
  : Schema extends z.ZodNullable<infer Inner>
    ? ViewOf<Inner> | null | undefined
    : Schema extends z.ZodOptional<infer Inner>
      ? ViewOf<Inner> | undefined
      : Schema extends z.ZodArray<infer Item>
        ? readonly ViewOf<Item>[]
        : Schema extends z.ZodObject<infer Shape>
          ? { readonly [Name in keyof Shape as Shape[Name] extends Absent ? never : Name]: ViewOf<Shape[Name]> } & {
              readonly [Name in keyof Shape as Shape[Name] extends Absent ? Name : never]?: ViewOf<Shape[Name]>;
            }
          : z.output<Schema>;
type Absent = z.ZodNullable | z.ZodOptional;

/** Returns what writes a view as its answer: the members of the schema, in its order. */
export const writerOf =
  <Schema extends z.ZodType>(schema: Schema) =>
  (view: ViewOf<Schema>): z.output<Schema> =>
    written(schema, view) as z.output<Schema>;

function written(schema: unknown, view: unknown): unknown {
  if (schema instanceof z.ZodNullable)
    return view === undefined || view === null ? null : written(schema.unwrap(), view);
  if (schema instanceof z.ZodOptional) return view === undefined ? undefined : written(schema.unwrap(), view);
  if (schema instanceof z.ZodArray) return (view as unknown[]).map((item) => written(schema.element, item));
  if (schema instanceof z.ZodObject) {
    const members = Object.entries(schema.shape as z.ZodRawShape);
    return Object.fromEntries(
      members.map(([name, one]) => [name, written(one, (view as Record<string, unknown>)[name])]),
    );
  }
  // A described schema shares its definition with the one it was made of.
  const { def } = schema as z.ZodType;
  if (def === usd.def) return usdText(view as Money);
  return def === instant.def ? iso(view as number) : view;
}

/** An amount above zero in a request. */
export const usdInput = z
  .string()
  .regex(/^\d{1,12}(\.\d{1,9})?$/, 'must be USD as decimal text, such as 12.50')
  .refine((text) => !/^[0.]+$/.test(text), 'must be above zero')
  .transform((text): Money => money(parseUsd(text)))
  .openapi({ type: 'string', example: '12.50' });

/** A time in a request. */
export const instantInput = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2026-11-21T08:30:00Z' })
  .transform((text): number => Date.parse(text))
  .openapi({ type: 'string', format: 'date-time' });

export const reasonInput = z.string().trim().min(1).max(500).describe('Why; kept in the audit log.');

const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be between ${least} and ${most}`)
    .openapi({ type: 'integer', minimum: least, maximum: most });

export const pageQuery = z.object({
  limit: wholeNumber(1, 500).optional(),
  after: z.string().max(500).optional().describe('`next` of the page before.'),
});
export const spanQuery = z.object({ from: instantInput.optional(), until: instantInput.optional() });
/** `team=search`. */
export const tagInput = z
  .string()
  .max(100)
  .regex(/^[a-z*][a-z0-9_.-]*(=.+)?$/);
export const countInput = wholeNumber;

export const pageOf = <Row extends z.ZodType>(row: Row) =>
  z.object({
    rows: z.array(row),
    next: z.string().nullable().describe('Asks for the next page; null: this was the last.'),
  });

/** The page as services take it. */
export function pageRequest(query: z.output<typeof pageQuery>): PageRequest {
  return { limit: query.limit ?? 50, after: query.after };
}

export function listed<Row, Json>(
  { rows, next, ...more }: Page<Row>,
  toJson: (row: Row) => Json,
): { rows: Json[]; next: string | null } {
  // Absent things are null in answers.
  const others = Object.entries(more).map(([name, value]) => [name, value ?? null]);
  return { ...Object.fromEntries(others), rows: rows.map(toJson), next: next ?? null };
}

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** The span of a query; without one the last `defaultMs`. */
export function spanOf(
  { from, until }: { from?: number | undefined; until?: number | undefined },
  now: number,
  defaultMs: number,
) {
  const end = until ?? now + 1;
  return { from: from ?? end - defaultMs, until: end };
}

/** The answer of a route. */
export const answers = <Schema extends z.ZodType>(schema: Schema, description = 'The answer.') => ({
  200: { description, content: { 'application/json': { schema } } },
});
export const answersCsv = { 200: { description: 'Rows as CSV.', content: { 'text/csv': { schema: z.string() } } } };
export const takes = <Schema extends z.ZodType>(schema: Schema) => ({
  content: { 'application/json': { schema } },
  required: true,
});

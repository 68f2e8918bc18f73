/** What strangers may see: the models with their prices, and how each has worked. Nothing of vendors, accounts or amounts of traffic. */
import { z } from '@hono/zod-openapi';
import { GatewayError } from '../../../../core/contract/errors.ts';
import { alertAdmin, usualLeastShare } from '../../../common/domain/admin/alerts.ts';
import { ownCauses } from '../../../common/domain/admin/requests.ts';
import type { Model } from '../../../common/domain/models.ts';
import { sheetOf } from '../../../common/domain/pages/price-sheet.ts';
import { catalog, priceQueries, requestQueries } from '../../services.ts';
import { priceSheet } from '../price-sheet.ts';
import { requestFilter } from '../request-rows.ts';
import { type ConsoleServices, need } from '../routing/router.ts';
import { Routes, route } from '../routing/routes.ts';
import { answers, dayMs, hourMs, instant, iso } from '../schemas.ts';
import { catalogueEntry, entryJson } from './catalogue-entry.ts';
import { defaultBuyer, ratioFor } from './models.ts';

const publicModel = catalogueEntry
  .omit({ ownedBy: true })
  .extend({ prices: priceSheet.omit({ version: true }) })
  .openapi('PublicModel');
const models = route(
  'get',
  '/public/models',
  'Models that are sold, with the prices of the default plan; for everybody',
  answers(z.object({ rows: z.array(publicModel) })),
);

const statusHours = 48;
const mostModels = 200;
/** Answers are shared for so long: strangers cannot make the database work. */
const keptMs = 60_000;
/** Below so many answers in an hour one failure would read like an outage. */
const fewest = 3;
const successKind = 'model_success';

const status = route(
  'get',
  '/public/status',
  'How much of real traffic each model answered, by hours; for everybody',
  answers(
    z.object({
      at: z.array(instant).describe('Where the hours begin.'),
      rows: z.array(
        z.object({
          id: z.string(),
          displayName: z.string(),
          kind: catalogueEntry.shape.kind,
          uptime: z.number().nullable().describe('Share of all answers that did not fail; null: there were too few.'),
          lastDay: z.number().nullable().describe('The same of the latest 24 hours.'),
          hours: z.array(z.number().nullable()),
          failing: z
            .boolean()
            .describe('An alert about its success runs, or its latest hour is below what such an alert begins at.'),
        }),
      ),
    }),
  ),
);

const legal = route(
  'get',
  '/public/legal/{name}',
  'Terms of use or imprint, where they are a page here',
  answers(z.object({ markdown: z.string() })),
  { params: z.object({ name: z.enum(['terms', 'imprint']) }) },
);

export function publicRoutes(services: ConsoleServices) {
  const { pages } = services.settings;
  const keptModels = kept(services, () => modelsOf(services));
  const keptStatus = kept(services, () => statusOf(services));
  return new Routes(services)
    .read(models, async ({ c }) => {
      if (!pages.models) throw closed();
      const rows = await keptModels();
      c.header('cache-control', `public, max-age=${keptMs / 1000}`);
      return { rows };
    })
    .read(legal, ({ param: { name }, c }) => {
      const text = services.settings.brand.legal[name];
      if (text === undefined || 'url' in text) throw closed();
      c.header('cache-control', `public, max-age=${keptMs / 1000}`);
      return { markdown: text.markdown };
    })
    .read(status, async ({ c }) => {
      if (!pages.status) throw closed();
      const answer = await keptStatus();
      c.header('cache-control', `public, max-age=${keptMs / 1000}`);
      return answer;
    });
}

const closed = () => new GatewayError('not_found', 'This gateway does not publish it.', { code: 'not_available' });

/** One answer for all who ask within a minute; those who come while it is made wait for the same one. */
function kept<T>({ clock }: ConsoleServices, make: () => Promise<T>): () => Promise<T> {
  let latest: { readonly answer: Promise<T>; readonly until: number } | undefined;
  return () => {
    const now = clock.monotonic();
    if (latest !== undefined && now < latest.until) return latest.answer;
    const answer = make();
    latest = { answer, until: now + keptMs };
    // A failure is not kept.
    answer.catch(() => {
      latest = undefined;
    });
    return answer;
  };
}

/** Models with a price now, at most so many. */
function sold(services: ConsoleServices): readonly Model[] {
  const now = services.clock.now();
  const buyer = defaultBuyer(services);
  return need(services, catalog)
    .list()
    .filter((entry) => sheetOf(entry.prices, now, ratioFor(services, buyer, entry)) !== undefined)
    .slice(0, mostModels);
}

async function modelsOf(services: ConsoleServices): Promise<z.infer<typeof publicModel>[]> {
  const modalities = new Map((services.find(priceQueries)?.list() ?? []).map((row) => [row.id, row.modalities]));
  const buyer = defaultBuyer(services);
  const now = services.clock.now();
  return sold(services).map((entry) => {
    const { ownedBy: _, ...shown } = entryJson(entry, modalities.get(entry.id) ?? []);
    const { version: __, ...prices } = sheetOf(entry.prices, now, ratioFor(services, buyer, entry))!;
    return { ...shown, prices };
  });
}

/** The models of which an alert says that they fail, and the share below which one would begin. */
async function rulesOfSuccess(services: ConsoleServices) {
  const alerts = services.find(alertAdmin);
  const [running, rules = []] = await Promise.all([
    alerts?.list({ running: true }, { limit: mostModels }),
    alerts?.rules(),
  ]);
  const about = running?.rows.filter(({ kind }) => kind === successKind) ?? [];
  const thresholds = rules.flatMap(({ kind, isOn, threshold }) =>
    isOn && kind === successKind ? [Number(threshold)] : [],
  );
  const least = thresholds.length === 0 ? usualLeastShare : Math.max(...thresholds);
  return { alerted: new Set(about.map(({ subject }) => subject)), least };
}

async function statusOf(services: ConsoleServices) {
  const queries = need(services, requestQueries);
  const now = services.clock.now();
  const end = Math.floor(now / hourMs) * hourMs + hourMs;
  const bounds = Array.from({ length: statusHours + 1 }, (_, index) => end - (statusHours - index) * hourMs);
  const shown = sold(services);
  const filter = requestFilter({}, { from: bounds[0]!, until: end }, undefined);
  const ids = shown.map(({ id }) => id);
  const found =
    ids.length === 0 ? [] : await queries.seriesOfGroups({ ...filter, withoutCauses: ownCauses }, bounds, 'model', ids);
  const { alerted, least } = await rulesOfSuccess(services);
  const byModel = Map.groupBy(found, ({ group }) => group);
  const rows = shown.map(({ id, displayName, kind }) => {
    const buckets = new Map((byModel.get(id) ?? []).map(({ at, results }) => [at, results]));
    const share = (all: readonly { readonly ok: number; readonly upstream_error: number }[]) => {
      const failed = all.reduce((sum, { upstream_error }) => sum + upstream_error, 0);
      // Clients' mistakes, and failures of the gateway itself, are not the model's.
      const answered = all.reduce((sum, { ok }) => sum + ok, 0) + failed;
      return answered < fewest ? null : Math.floor((1 - failed / answered) * 1_000) / 1_000;
    };
    const hours = bounds.slice(0, -1).map((at) => share([buckets.get(at)].flatMap((results) => results ?? [])));
    const latest = hours.findLast((one) => one !== null);
    const failing = alerted.has(id) || (latest !== undefined && latest !== null && latest < least);
    const day = [...buckets].flatMap(([at, results]) => (at >= end - dayMs ? [results] : []));
    return { id, displayName, kind, uptime: share([...buckets.values()]), lastDay: share(day), hours, failing };
  });
  return { at: bounds.slice(0, -1).map(iso), rows };
}

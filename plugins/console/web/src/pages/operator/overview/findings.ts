/** Problems for an operator to look at, and open set-up steps. Pure. */
import { stateOf } from '../sums/upstream-state.ts';
import type { Monitor, Upstream } from '../types.ts';

export interface Facts {
  readonly upstreams: readonly Upstream[] | undefined;
  /** Models of the catalogue, and how many of them have no price. */
  readonly models: { readonly all: number; readonly unpriced: number } | undefined;
  readonly day: Monitor | undefined;
  /** Alerts that run; undefined: not known, or this gateway has none. */
  readonly alerts?: number | undefined;
  readonly people: number | undefined;
  readonly mail: boolean;
}

export type Finding = 'alerts' | 'broken' | 'failing' | 'errors' | 'few' | 'unpriced' | 'loss';
/** These alone are no trouble. */
export const mild: readonly Finding[] = ['few', 'unpriced'];
export interface Found {
  readonly finding: Finding;
  readonly count: number;
  /** Its subject, where it has a name. */
  readonly names: readonly string[];
}

/** From here on failures are more than chance. */
const fewestCalls = 20;
const mostFailing = 0.05;

/** The worst first; unknown figures give no finding. */
export function findingsIn({ upstreams = [], models, day, alerts = 0 }: Facts): readonly Found[] {
  const inState = (state: 'broken' | 'failing') =>
    upstreams.filter((upstream) => stateOf(upstream) === state).map(({ provider }) => provider);
  const [broken, failing] = [inState('broken'), inState('failing')];
  const failed = day?.results.upstream_error ?? 0;
  const errors = tooManyErrors(day);
  const found: Found[] = [
    { finding: 'alerts', count: alerts, names: [] },
    { finding: 'broken', count: broken.length, names: broken },
    { finding: 'failing', count: failing.length, names: failing },
    { finding: 'errors', count: errors, names: [] },
    { finding: 'few', count: errors === 0 ? failed : 0, names: [] },
    { finding: 'loss', count: day?.margin?.startsWith('-') ? 1 : 0, names: [] },
    { finding: 'unpriced', count: models?.unpriced ?? 0, names: [] },
  ];
  return found.filter(({ count }) => count > 0);
}

function tooManyErrors(day: Monitor | undefined): number {
  if (day === undefined || day.requests < fewestCalls) return 0;
  const { upstream_error: failed } = day.results;
  return failed / day.requests > mostFailing ? failed : 0;
}

export const steps = ['vendor', 'price', 'people', 'mail', 'call'] as const;
export type Step = (typeof steps)[number];

/** Whether each step of the first day is done; undefined: not all of it is known yet. */
export function doneSteps({ upstreams, models, day, people, mail }: Facts): ReadonlySet<Step> | undefined {
  if (upstreams === undefined || models === undefined || day === undefined || people === undefined) return undefined;
  const done: readonly [Step, boolean][] = [
    ['vendor', upstreams.some(({ keys }) => keys.some(({ disabled }) => !disabled))],
    ['price', models.all > models.unpriced],
    ['people', people > 1],
    ['mail', mail],
    ['call', day.requests > 0],
  ];
  return new Set(done.filter(([, is]) => is).map(([step]) => step));
}

/** Tools that all parts of the plugin use. */
import type { Host } from '../../core/contract/contract.ts';
import type { Providers, Translations } from '../common/domain/upstreams.ts';
import type { Sessions } from './affinity.ts';
import type { HealthRegistry } from './health.ts';
import type { HedgeBudget } from './hedging/hedge.ts';

export interface Tools {
  readonly host: Host;
  readonly providers: Providers;
  readonly registry: HealthRegistry;
  readonly sessions: Sessions;
  readonly hedges: HedgeBudget;
  /** Looked up at the first request, when every plugin is set up. */
  translations?: Translations | undefined;
}

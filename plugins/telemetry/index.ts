/** Telemetry: metrics for Prometheus on a listener of their own, metrics and traces to an OpenTelemetry collector. */
import { definePlugin } from '../../core/contract/contract.ts';
import { regularWorks } from '../../core/contract/outage.ts';
import { outboundCalls } from '../../core/contract/outbound.ts';
import { listenRemarks } from '../../core/contract/schema.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { socketStatistics } from '../common/domain/admin/sockets.ts';
import { batchStatistics, fileStatistics } from '../common/domain/admin/stored-work.ts';
import { upstreamAdmin } from '../common/domain/admin/upstreams.ts';
import { counters } from '../common/domain/counters.ts';
import { database } from '../common/domain/database.ts';
import { authorizations } from '../common/domain/ledger.ts';
import { checkVerdicts } from '../common/guardrails/checks.ts';
import { orderSpans, trace } from '../common/wire/trace.ts';
import { type TelemetryConfig, telemetrySchema } from './config.ts';

export default definePlugin<TelemetryConfig>({
  name: 'telemetry',
  config: telemetrySchema,
  services: {
    optional: [
      ...[database, counters, authorizations, ledgerQueries, socketStatistics],
      ...[upstreamAdmin, batchStatistics, fileStatistics, regularWorks, outboundCalls, checkVerdicts],
    ],
    provides: [orderSpans],
  },

  sets: [trace],

  async setup(host, config) {
    const { listen, otlp } = config;
    const notices = () =>
      (listen === undefined ? [] : listenRemarks('telemetry.listen', listen)).map(
        (text) => ({ level: 'warning', text }) as const,
      );
    if (host.mode !== 'serve' || (listen === undefined && otlp.endpoint === ''))
      return {
        checks: { notices },
      };
    // OpenTelemetry's packages are large, and most gateways start without them.
    const { openTelemetry } = await import('./open.ts');
    return {
      checks: { notices },
      ...openTelemetry(host, config),
    };
  },
});

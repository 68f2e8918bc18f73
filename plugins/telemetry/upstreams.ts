/** The instruments of upstreams: circuits, requests under way and waiting, looked at when the metrics are asked for. */
import type { Meter } from '@opentelemetry/api';
import type { Host } from '../../core/contract.ts';
import { type TargetView, type UpstreamView, upstreamDesk } from '../../core/desk.ts';

const circuits: Readonly<Record<TargetView['circuit'], number>> = { closed: 0, half_open: 1, open: 2 };

export function observeUpstreams(meter: Meter, host: Host): void {
  const views = (): readonly UpstreamView[] => host.find(upstreamDesk)?.list() ?? [];
  const gauge = (name: string, description: string) =>
    meter.createObservableGauge(`gateway.upstream.${name}`, { description });

  gauge('circuit', 'How a model of a provider does: 0 closed, 1 may be tried, 2 open.').addCallback((result) => {
    for (const { provider, targets = [] } of views())
      for (const { model, circuit } of targets)
        result.observe(circuits[circuit], { 'gen_ai.provider.name': provider, model });
  });
  gauge('in_flight', 'Requests under way at a provider, from this process.').addCallback((result) => {
    for (const { provider, targets = [] } of views())
      result.observe(sum(targets), { 'gen_ai.provider.name': provider });
  });
  gauge('queue', 'Requests that wait for a place at a provider that has a bound.').addCallback((result) => {
    for (const { provider, room } of views())
      if (room !== undefined) result.observe(room.waiting, { 'gen_ai.provider.name': provider });
  });
}

function sum(targets: readonly TargetView[]): number {
  return targets.reduce((total, { inFlight }) => total + inFlight, 0);
}

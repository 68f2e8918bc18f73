/** The instruments of upstreams: circuits, requests under way and waiting, looked at when the metrics are asked for. */
import type { Meter } from '@opentelemetry/api';
import type { Host } from '../../core/contract.ts';
import { type TargetView, upstreamDesk } from '../../core/desk.ts';

const circuits: Readonly<Record<TargetView['circuit'], number>> = { closed: 0, half_open: 1, open: 2 };

export function observeUpstreams(meter: Meter, host: Host): void {
  const gauge = (name: string, description: string) =>
    meter.createObservableGauge(`gateway.upstream.${name}`, { description });
  const circuit = gauge('circuit', 'How a model of a provider does: 0 closed, 1 may be tried, 2 open.');
  const inFlight = gauge('in_flight', 'Requests under way at a provider, from this process.');
  const queue = gauge('queue', 'Requests that wait for a place at a provider that has a bound.');

  // One look for all three.
  meter.addBatchObservableCallback(
    (result) => {
      for (const { provider, room, targets = [] } of host.find(upstreamDesk)?.list() ?? []) {
        const attributes = { 'gen_ai.provider.name': provider };
        result.observe(inFlight, sum(targets), attributes);
        if (room !== undefined) result.observe(queue, room.waiting, attributes);
        for (const { model, circuit: state } of targets)
          result.observe(circuit, circuits[state], { ...attributes, model });
      }
    },
    [circuit, inFlight, queue],
  );
}

function sum(targets: readonly TargetView[]): number {
  return targets.reduce((total, { inFlight }) => total + inFlight, 0);
}

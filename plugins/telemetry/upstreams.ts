/** The instruments of upstreams (circuits, requests, keys) and of clients' WebSockets, looked at when the metrics are asked for. */
import type { Meter } from '@opentelemetry/api';
import type { Host } from '../../core/contract/contract.ts';
import { socketStatistics } from '../common/domain/admin/sockets.ts';
import { type TargetView, type UpstreamView, upstreamAdmin } from '../common/domain/admin/upstreams.ts';

const circuits: Readonly<Record<TargetView['circuit'], number>> = { closed: 0, half_open: 1, open: 2 };

export function observeUpstreams(meter: Meter, host: Host): void {
  const gauge = (name: string, description: string) =>
    meter.createObservableGauge(`gateway.upstream.${name}`, { description });
  const circuit = gauge('circuit', 'How a model of a provider does: 0 closed, 1 may be tried, 2 open.');
  const inFlight = gauge('in_flight', 'Requests under way at a provider, from this process.');
  const queue = gauge('queue', 'Requests that wait for a place at a provider that has a bound.');
  const keys = gauge('keys', 'Keys of each upstream, by their state here.');

  // One look for all of them.
  meter.addBatchObservableCallback(
    (result) => {
      for (const view of host.find(upstreamAdmin)?.list() ?? []) {
        const { provider, room, targets = [] } = view;
        const attributes = { 'gen_ai.provider.name': provider };
        result.observe(inFlight, sum(targets), attributes);
        if (room !== undefined) result.observe(queue, room.waiting, attributes);
        for (const { model, circuit: state } of targets)
          result.observe(circuit, circuits[state], { ...attributes, model });
        for (const [state, count] of Object.entries(keysOf(view)))
          result.observe(keys, count, { ...attributes, state });
      }
    },
    [circuit, inFlight, queue, keys],
  );
}

function sum(targets: readonly TargetView[]): number {
  return targets.reduce((total, { inFlight }) => total + inFlight, 0);
}

/** How many serve, rest for all models, rest for some, or were taken out of use. */
function keysOf({ disabled, keys }: UpstreamView): Record<string, number> {
  const counts = { ready: 0, resting: 0, resting_for_models: 0, disabled: 0 };
  for (const key of keys) {
    if (disabled || key.disabled) counts.disabled += 1;
    else if (key.restsMs > 0) counts.resting += 1;
    else if (key.modelRests.length > 0) counts.resting_for_models += 1;
    else counts.ready += 1;
  }
  return counts;
}

export function observeSockets(meter: Meter, host: Host): void {
  const counter = (name: string, description: string, unit?: string) =>
    meter.createObservableCounter(`gateway.websocket.${name}`, { description, ...(unit && { unit }) });
  const open = meter.createObservableGauge('gateway.websocket.open', { description: 'WebSockets of clients.' });
  const turns = counter('turns', 'Exchanges that ran on WebSockets of clients.');
  const bytes = counter('bytes', 'Bytes of messages on WebSockets of clients.', 'By');
  const closes = counter('closes', 'WebSockets of clients that were closed, by code; 0: a rare one.');

  meter.addBatchObservableCallback(
    (result) => {
      for (const [protocol, counts] of host.find(socketStatistics)?.counts() ?? []) {
        result.observe(open, counts.open, { protocol });
        result.observe(turns, counts.turns, { protocol });
        result.observe(bytes, counts.bytesIn, { protocol, direction: 'in' });
        result.observe(bytes, counts.bytesOut, { protocol, direction: 'out' });
        for (const [code, count] of counts.closes) result.observe(closes, count, { protocol, code });
      }
    },
    [open, turns, bytes, closes],
  );
}

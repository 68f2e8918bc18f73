/** Every metric, by the instruments that the plugin `telemetry` makes. */
import type { Meter } from '@opentelemetry/api';
import type { Host } from '../../core/contract/contract.ts';
import { modelMeters } from '../../plugins/telemetry/generation.ts';
import { createMeters } from '../../plugins/telemetry/meters.ts';
import { observeStoredWork } from '../../plugins/telemetry/open.ts';
import { observeSockets } from '../../plugins/telemetry/upstreams.ts';

export interface Metric {
  readonly name: string;
  /** Its name for Prometheus. */
  readonly prometheus: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly unit: string;
  readonly description: string;
}

export function metrics(): Metric[] {
  const found = new Map<string, Metric>();
  const make =
    (type: Metric['type']) =>
    (name: string, { unit = '', description = '' }: { unit?: string; description?: string } = {}) => {
      const plain = name.replaceAll('.', '_');
      const units: Readonly<Record<string, string>> = { s: 'seconds', By: 'bytes', '{token}': 'tokens' };
      const prometheus = type === 'counter' ? `${plain}_total` : plain;
      found.set(name, { name, prometheus, type, unit: units[unit] ?? unit, description });
      return { addCallback() {}, add() {}, record() {} };
    };
  const meter = {
    createCounter: make('counter'),
    createObservableCounter: make('counter'),
    createHistogram: make('histogram'),
    createObservableGauge: make('gauge'),
    addBatchObservableCallback() {},
  } as unknown as Meter;
  const host = { find: () => undefined } as unknown as Host;
  createMeters(meter, host, '1.37');
  modelMeters(meter, 'genai-0.1');
  observeSockets(meter, host);
  observeStoredWork(meter, host);
  return [...found.values()].sort((one, other) => one.name.localeCompare(other.name, 'en'));
}

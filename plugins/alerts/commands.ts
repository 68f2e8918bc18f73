/** Commands about alerts: list them, and try a sink. */
import type { Command, Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { AlertsConfig } from './config.ts';
import type { Deliveries } from './deliveries.ts';
import { messageOf, valueText } from './message.ts';
import type { AlertRows } from './rows.ts';

const shown = 50;

export function alertCommands(
  host: Host,
  rows: AlertRows,
  deliveries: Deliveries,
  config: () => AlertsConfig,
): readonly Command[] {
  return [
    {
      name: 'alerts list',
      summary: `Lists the latest ${shown} alerts, with those that run`,
      async run() {
        const { rows: found } = await rows.list({}, { limit: shown });
        const lines = found.map(({ beganAt, endedAt, title, subject, value, unit }) => {
          const state = endedAt === undefined ? 'runs' : 'over';
          return `${new Date(beganAt).toISOString()}  ${state}  ${title}: ${subject} (${valueText(value, unit)})`;
        });
        return { json: found, text: lines.join('\n') || 'There were no alerts.' };
      },
    },
    {
      name: 'alerts test',
      summary: 'Sends a test message to one sink of this gateway, as an alert would be',
      arguments: ['<sink>'],
      async run({ sink }) {
        const name = String(sink);
        const known = Object.keys(config().sinks);
        if (!known.includes(name)) {
          const hint = known.length === 0 ? 'none is set under alerts.sinks' : `there are ${known.join(', ')}`;
          throw new GatewayError('not_found', `There is no sink "${name}": ${hint}.`);
        }
        const fault = await deliveries.send(name, testMessage(host));
        await rows.recordTest(name, fault, host.clock.now());
        if (fault !== undefined) throw new GatewayError('conflict', `The sink "${name}" did not take it: ${fault}.`);
        return { json: { sink: name, sent: true }, text: `The sink "${name}" took a test message.` };
      },
    },
  ];
}

export function testMessage({ gateway, clock, random }: Host) {
  const now = clock.now();
  const facts = {
    id: random.bytes(12).toString('hex'),
    event: 'test',
    kind: 'test',
    kindTitle: 'Test',
    rule: 'test',
  } as const;
  return messageOf({
    ...facts,
    gateway,
    subject: 'this sink',
    value: 0,
    threshold: 0,
    unit: 'count',
    fields: {},
    beganAt: now,
    at: now,
  });
}

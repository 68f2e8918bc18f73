/** Former names of settings: accepted for a release, named in a notice, refused beside their new names, and kept in the schema. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renamedNotices } from '../../core/contract/renamed.ts';
import type { z } from '../../core/contract/schema.ts';
import { configSchema } from '../../core/gateway/json-schema.ts';
import billing from '../../plugins/billing/index.ts';
import { modelsSchema } from '../../plugins/models/config.ts';
import plans from '../../plugins/plans/index.ts';
import { routeSchema } from '../../plugins/route/config.ts';
import { telemetrySchema } from '../../plugins/telemetry/config.ts';

interface Case {
  readonly setting: string;
  readonly to: string;
  readonly schema: z.ZodType;
  readonly former: object;
  readonly now: object;
  readonly both: object;
}

const settingCase = (
  setting: string,
  to: string,
  schema: unknown,
  [former, now]: readonly [unknown, unknown],
  section = (members: object): object => members,
): Case => {
  const [name, next] = [setting.split('.').at(-1)!, to.split('.').at(-1)!];
  return {
    setting,
    to,
    schema: schema as z.ZodType,
    former: section({ [name]: former }),
    now: section({ [next]: now }),
    both: section({ [name]: former, [next]: now }),
  };
};

const inOffer = (members: object) => ({ default: 'free', offers: { free: {}, saver: { price: 3, ...members } } });
const inModel = (members: object) => ({ one: { owned_by: 'a', targets: ['a'], ...members } });
const cooldown = { rate_limited: '7s' };

const cases: readonly Case[] = [
  settingCase('route.retry_unknown', 'route.retry_ambiguous', routeSchema, [true, true]),
  settingCase('route.choose', 'route.strategy', routeSchema, ['listed', 'ordered']),
  settingCase('route.choose', 'route.strategy', routeSchema, ['fastest', 'fastest']),
  settingCase('route.rest', 'route.cooldown', routeSchema, [cooldown, cooldown]),
  settingCase('models.one.choose', 'models.one.strategy', modelsSchema, ['listed', 'ordered'], inModel),
  settingCase('models.one.choose', 'models.one.strategy', modelsSchema, ['fastest', 'fastest'], inModel),
  settingCase('plans.offers.saver.lasts', 'plans.offers.saver.duration', plans.config, ['30d', '30d'], inOffer),
  settingCase('billing.hold.whole_answers', 'billing.hold.non_streaming', billing.config, ['step', 'estimate'], hold),
  settingCase('billing.hold.whole_answers', 'billing.hold.non_streaming', billing.config, ['bound', 'max'], hold),
  settingCase('telemetry.pass_on', 'telemetry.propagate', telemetrySchema, [false, false]),
];

function hold(members: object): object {
  return { hold: members };
}

for (const { setting, to, schema, former, now, both } of cases) {
  test(`${setting} means ${to}: ${JSON.stringify(former)}`, () => {
    const name = setting.slice(0, setting.indexOf('.'));
    const parsed = schema.parse(former);
    assert.deepEqual(parsed, schema.parse(now));
    const text = `${setting} is now called ${to}; the former name is valid until the next release`;
    assert.deepEqual(renamedNotices(name, parsed), [{ level: 'warning', text }]);
    assert.deepEqual(renamedNotices(name, schema.parse(now)), []);
    const refused = schema.safeParse(both).error?.issues[0];
    assert.match(refused?.message ?? '', /is the former name of ".*"; write only one of them/);
    assert.deepEqual(refused?.path.join('.'), setting.slice(name.length + 1));
  });
}

test('a wrong value under a former name is a problem of that name', () => {
  const { error } = routeSchema.safeParse({ choose: 'ordered' });
  assert.deepEqual(error?.issues[0]?.path, ['choose']);
});

test('the schema for editors has the former names, marked as deprecated', async () => {
  const text = JSON.stringify(await configSchema());
  for (const name of ['retry_unknown', 'choose', 'rest', 'lasts', 'whole_answers', 'pass_on'])
    assert.match(text, new RegExp(`"${name}":\\{[^{}]*(\\{[^{}]*\\})?[^{}]*"deprecated":true`), name);
});
